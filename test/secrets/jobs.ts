import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { secret } from "../../src/domain/secrets/marks.ts";
import type { JobContext, JobResult } from "../../src/handlers/context.ts";
import { permanentFailure, transientFailure } from "../../src/handlers/outcome.ts";
import { defineJob } from "../../src/handlers/registry.ts";

const TELL = { name: "test.tell", version: 1 } as const;

const common = {
  password: z.unknown().optional(),
  marked: secret(z.string()).optional(),
  list: z.array(z.looseObject({ token: secret(z.string()).optional() })).optional(),
  how: z.string(),
};

/** As the API knows it. */
export const tell = defineJob({ ...TELL, input: z.looseObject(common), run: betray });

/** As the worker has it: what was accepted may be refused later, by a newer program. */
export const strictTell = defineJob({
  ...TELL,
  input: z.looseObject({
    ...common,
    pin: z.number("must be a number").optional(),
    choice: z.union([z.literal("a"), z.number()]).optional(),
    strict: z.strictObject({}).optional(),
  }),
  run: betray,
});

type Input = { password?: unknown; marked?: string | undefined; how: string };

/** Tells its secret in the one way or the other. */
async function betray(ctx: JobContext, { password, marked, how }: Input): Promise<JobResult> {
  const text = marked ?? String(password);
  const basic = Buffer.from(`user:${text}`).toString("base64");
  if (how === "log") {
    ctx.log.warn({ payload: { password }, text, basic, deep: [{ inner: { text } }] }, `says ${text}`);
    ctx.log.child({ bound: text }).error({ err: new Error(`a cause: ${text}`) }, "in a child");
    ctx.log.info(JSON.stringify({ as: JSON.stringify({ json: text }) }));
    return undefined;
  }
  if (how === "progress") {
    ctx.progress({ [text]: text, basic, url: `https://x.example/?q=${encodeURIComponent(text)}` });
    // Until a heartbeat has carried it.
    await sleep(1500, undefined, { signal: ctx.signal });
    return undefined;
  }
  if (how === "permanent") {
    const hex = Buffer.from(text).toString("hex");
    throw permanentFailure(`code ${text}`, `${"x".repeat(3990)}${text} ${hex} ${JSON.stringify(text)}`);
  }
  if (how === "transient") {
    throw transientFailure("busy", `${basic} ${new URLSearchParams({ text })} ${encodeURIComponent(text)}`);
  }
  if (how === "output") {
    return { output: { name: `${text}.txt`, mediaType: "text/plain", bytes: Buffer.from("a result") } };
  }
  if (how === "media") {
    return { output: { name: "x.txt", mediaType: `text/${text}`, bytes: Buffer.from("a result") } };
  }
  if (how === "detach") return { detached: { callbackWithinMs: text as never } };
  if (how === "stray") {
    void Promise.reject(new Error(`left behind: ${text}`));
    return undefined;
  }
  if (how === "succeed") return undefined;
  throw new Error(`login as ${text} failed`);
}
