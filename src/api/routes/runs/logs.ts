import { Readable } from "node:stream";
import { z } from "zod";
import { PunctualError } from "../../../kernel/errors.ts";
import { type LogPartView, listLogParts } from "../../../store/reads/logs/parts.ts";
import { type ApiContext, READERS } from "../../context.ts";
import { runParams } from "../../input/fields.ts";
import { Problem } from "../../problems/problem.ts";
import { getRun } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

const whole = (description: string) =>
  z
    .string()
    .regex(/^\d{1,12}$/, "must be a whole number")
    .transform(Number)
    .optional()
    .describe(description);

export const getLogsRoute = defineRoute({
  method: "get",
  path: "/v1/runs/{run}/logs",
  tag: "runs",
  summary: "Read what an attempt's work has said",
  description:
    "Text, also while the attempt runs: some seconds behind it. Of a long log the newest is kept; a line in brackets stands for what is not. `Punctual-Log-Next` is the `fromByte` of what follows, `Punctual-Log-Attempt` the attempt whose log it is.",
  roles: READERS,
  params: runParams,
  query: z.strictObject({
    attempt: whole("The attempt's number (default: the latest)"),
    fromByte: whole("Where to begin in the whole log (default: 0)"),
    tailBytes: whole("At most so much of its end"),
  }),
  answer: { kind: "ok", description: "The log so far", mediaType: "text/plain" },
  problems: ["not-found", "history-removed"],
  async handle({ params, query }, context, caller) {
    const run = await getRun(context, caller, params.run);
    const attempt = query.attempt ?? run.attempt;
    if (attempt > run.attempt || (attempt === 0 && run.attempt > 0)) {
      throw new Problem("not-found", `The run has no attempt ${attempt}; its latest is ${run.attempt}`);
    }
    const parts = await listLogParts(context.db, caller.tenantId, run.id, attempt);
    const last = parts.at(-1);
    const endByte = last === undefined ? 0 : last.atByte + last.size;
    const fromByte = Math.max(query.fromByte ?? 0, query.tailBytes === undefined ? 0 : endByte - query.tailBytes);
    return {
      kind: "ok",
      headers: {
        "content-type": "text/plain; charset=utf-8",
        // Whatever a job has printed is no page of ours.
        "content-security-policy": "sandbox; default-src 'none'",
        "punctual-log-attempt": String(attempt),
        "punctual-log-next": String(Math.max(endByte, fromByte)),
      },
      stream: Readable.from(textOf(context, parts, fromByte), { objectMode: false }),
    };
  },
});

async function* textOf(
  context: ApiContext,
  parts: readonly LogPartView[],
  fromByte: number,
): AsyncGenerator<Uint8Array> {
  let at = fromByte;
  for (const part of parts) {
    if (part.atByte + part.size <= fromByte) continue;
    if (part.atByte > at) yield missing(part.atByte - at);
    yield* bytesOf(context, part, Math.max(0, fromByte - part.atByte));
    at = part.atByte + part.size;
  }
}

const missing = (bytes: number) => Buffer.from(`[${bytes} bytes are not kept]\n`);

/** A part's bytes without its first ones, from the beginning of a character. */
async function* bytesOf(context: ApiContext, part: LogPartView, skip: number): AsyncGenerator<Uint8Array> {
  try {
    const stream = await context.objects.open(part);
    let left = skip;
    let isWhole = skip === 0;
    for await (const chunk of stream as AsyncIterable<Buffer | string>) {
      let bytes: Uint8Array = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      const skipped = Math.min(left, bytes.byteLength);
      left -= skipped;
      bytes = bytes.subarray(skipped);
      if (!isWhole && bytes.byteLength > 0) {
        bytes = bytes.subarray(Math.max(0, bytes.findIndex(beginsCharacter)));
        isWhole = true;
      }
      yield bytes;
    }
  } catch (error) {
    // Taken by the cleaner between two looks, or never arrived: the rest is still worth reading.
    if (!(error instanceof PunctualError) || error.code !== "object-missing") throw error;
    context.log.warn({ uri: part.uri }, "a part of a log is not in the object store");
    yield missing(part.size - skip);
  }
}

const beginsCharacter = (byte: number) => (byte & 0xc0) !== 0x80;
