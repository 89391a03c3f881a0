import { z } from "zod";
import { keepLog } from "../../../authority/attempts/keep-log.ts";
import { showId } from "../../../kernel/ids.ts";
import { LOG_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { cancelRequestedSchema, spokenFields } from "../../worker/attempt-fields.ts";
import { attemptOf, readCancelRequested, staleFence } from "../../worker/speaker.ts";

const LONGEST = 262_144;

export const logRoute = defineRoute({
  method: "post",
  path: "/v1/worker/log",
  tag: "workers",
  summary: "Add to an attempt's log",
  description:
    "Whole lines, gathered: each call is a part of the log that is stored by itself. The newest parts are kept, without the secrets of the payload. Sent again after a lost answer, a text may stand there twice.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    ...spokenFields,
    text: z.string().min(1).max(LONGEST).describe("Text, such as lines of JSON"),
  }),
  example: LOG_BODY,
  answer: {
    kind: "ok",
    description: "It is kept; `off`: this installation keeps no logs",
    schema: z.strictObject({
      runId: z.string(),
      outcome: z.enum(["kept", "off"]),
      cancelRequested: cancelRequestedSchema,
    }),
  },
  problems: ["not-found", "stale-fence", "not-holder"],
  async handle({ body }, context, caller) {
    const { scrubbing, logs } = context.workers;
    const spoken = await attemptOf(context, caller, body);
    const { runId, attempt, fence } = spoken;
    const bytes = Buffer.from((await scrubbing.of({ runId })).scrub(body.text));
    const kept = await keepLog(context.authority, logs, { runId, attempt, fence, bytes });
    if (kept.kind === "stale-fence") throw staleFence();
    if (kept.kind === "failed") {
      const headers = { "retry-after": "2" };
      throw new Problem("unavailable", "Logs cannot be stored at the moment", { headers, cause: kept.error });
    }
    // Last words may come when the attempt is over: there is nothing to cancel then.
    const cancelRequested = (await readCancelRequested(context, caller, spoken)) ?? false;
    return { kind: "ok", body: { runId: showId("run", runId), outcome: kept.kind, cancelRequested } };
  },
});
