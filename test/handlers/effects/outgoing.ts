import { Readable } from "node:stream";
import { type Effect, effectSchema } from "../../../src/domain/effects/definition.ts";
import { openHeaders } from "../../../src/domain/effects/headers.ts";
import { NO_SECRETS } from "../../../src/domain/secrets/known.ts";
import type { OutgoingEffect } from "../../../src/handlers/effects/port.ts";

/** An effect as a sender hands it to an adapter. */
export function outgoing(effect: Record<string, unknown>, change: Partial<OutgoingEffect> = {}): OutgoingEffect {
  const parsed = effectSchema.parse(effect) as Effect;
  return {
    headers: parsed.kind === "webhook" ? openHeaders(parsed.headers, new Map()) : {},
    secrets: NO_SECRETS,
    tenantId: "01000000-0000-8000-8000-000000000001",
    actionId: "mail-run_01",
    effect: parsed,
    content: undefined,
    facts: {
      schedule: { id: "sch_01", name: "Sales\r\nreport" },
      job: "report.run-summary",
      run: {
        id: "run_01",
        scheduledAt: Date.UTC(2026, 10, 30, 14),
        finishedAt: Date.UTC(2026, 10, 30, 14, 0, 2),
        attempt: 1,
      },
      result: { sha256: "ab".repeat(32), size: 12, mediaType: "text/html; charset=utf-8", linkExpires: 1_800_000_000 },
    },
    resultUrl: "https://punctual.example.com/v1/objects/run_01?x=1",
    openResult: async () => Readable.from([Buffer.from("<p>report</p>")]),
    ...change,
  };
}

export const patient = () => new AbortController().signal;
