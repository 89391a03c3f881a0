import type { CallbackPass } from "../../src/handlers/callbacks.ts";
import type { JobContext } from "../../src/handlers/context.ts";
import type { RunSummaryRow } from "../../src/handlers/run-reader.ts";
import { silentLog } from "../../src/kernel/log.ts";
import type { Bytes } from "../../src/objects/port.ts";

export const RUN_AT = Date.UTC(2026, 10, 29, 18, 0);
export const TENANT = "0196a0c1-5c00-8123-8abc-00000000000a";

/** What every attempt is given for somebody elsewhere. */
export const CALLBACK: CallbackPass = { url: "https://punctual.example.com/v1/worker", token: "cb_token" };

export type TestContext = JobContext & {
  staged: { name: string; mediaType: string; text: string }[];
  shown: unknown[];
  captured: string[];
};

/** A context whose outputs are kept in memory and whose runs come from `pages`, whoever asks for whatever period. */
export function testContext(
  options: { signal?: AbortSignal; pages?: () => Iterable<readonly RunSummaryRow[]>; scheduledAt?: number } = {},
): TestContext {
  const staged: TestContext["staged"] = [];
  const shown: unknown[] = [];
  const captured: string[] = [];
  return {
    run: {
      id: "0196a0c1-5c00-8123-8abc-0123456789ab",
      scheduleId: null,
      tenantId: TENANT,
      scheduledAt: options.scheduledAt ?? RUN_AT,
      dueAt: options.scheduledAt ?? RUN_AT,
      attempt: 1,
      fence: 1n,
    },
    signal: options.signal ?? new AbortController().signal,
    deadlineAt: RUN_AT + 900_000,
    log: silentLog,
    capture: (chunk) => void captured.push(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()),
    progress: (value) => void shown.push(value),
    async output(name, bytes, mediaType) {
      const text = await textOf(bytes);
      staged.push({ name, mediaType, text });
      return { name, mediaType, uri: `fs:test/${name}`, version: "1", sha256: "0".repeat(64), size: text.length };
    },
    callback: () => CALLBACK,
    read: {
      async *runsBetween() {
        yield* options.pages?.() ?? [];
      },
    },
    staged,
    shown,
    captured,
  };
}

async function textOf(bytes: Bytes): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) parts.push(Buffer.from(part));
  return Buffer.concat(parts).toString("utf8");
}
