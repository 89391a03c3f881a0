import { z } from "zod";
import { type BeatOutcome, heartbeat } from "../../../authority/attempts/heartbeat.ts";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { readStandings } from "../../../store/reads/workers/standings.ts";
import type { ApiContext } from "../../context.ts";
import { HEARTBEAT_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import {
  attemptSchema,
  cancelRequestedSchema,
  fenceSchema,
  runIdSchema,
  workerSchema,
} from "../../worker/attempt-fields.ts";

/** Rows that somebody holds just now are asked for again, so often and after so long. */
const TRIES = 5;
const PAUSE_MS = 40;

export const heartbeatRoute = defineRoute({
  method: "post",
  path: "/v1/worker/heartbeat",
  tag: "workers",
  summary: "Renew the leases of attempts",
  description:
    "Of all attempts of a worker at once, every `heartbeatMs`. It also revives a lease that is over while nobody has taken over. Each attempt has an answer of its own.",
  roles: ["worker"],
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    worker: workerSchema,
    attempts: z
      .array(z.strictObject({ runId: runIdSchema, attempt: attemptSchema, fence: fenceSchema }))
      .min(1)
      .max(1_000),
  }),
  example: HEARTBEAT_BODY,
  answer: {
    kind: "ok",
    description: "In the order of the attempts",
    schema: z.strictObject({
      attempts: z.array(
        z.strictObject({
          runId: z.string(),
          outcome: z
            .enum(["renewed", "stale-fence", "not-holder", "deadline", "busy"])
            .describe(
              "`stale-fence`: another attempt took over, or the run has ended. `not-holder`: it was detached or adopted. `deadline`: its time is over. `busy`: not known, ask again",
            ),
          cancelRequested: cancelRequestedSchema,
          remainingMs: z.int().describe("How long the lease lasts from now; 0 where it was not renewed"),
        }),
      ),
    }),
  },
  problems: [],
  async handle({ body }, context, { tenantId }) {
    const { worker, attempts } = body;
    context.workers.presence.works({ tenantId, name: worker });
    const ids = attempts.flatMap(({ runId }) => readId("run", runId) ?? []);
    const standings = await readStandings(context.db, tenantId, ids);
    const known = attempts.map(({ runId, attempt, fence }) => {
      const standing = standings.get(readId("run", runId) ?? "");
      const isTheirs = standing?.class === "remote" && standing.fence === fence && standing.attempt === attempt;
      return isTheirs ? { runId: standing.id, fence, worker } : undefined;
    });
    const outcomes = await beat(
      context,
      known.filter((one) => one !== undefined),
    );
    return {
      kind: "ok",
      body: {
        attempts: attempts.map(({ runId }, i) => {
          const outcome = outcomes.get(known[i]?.runId ?? "") ?? { kind: "stale-fence" };
          const isRenewed = outcome.kind === "renewed";
          return {
            runId,
            outcome: outcome.kind,
            cancelRequested: isRenewed && outcome.cancelRequested,
            remainingMs: isRenewed ? Math.max(0, Math.floor(outcome.remainingMs)) : 0,
          };
        }),
      },
    };
  },
});

type Beats = Parameters<typeof heartbeat>[1];

async function beat({ authority, clock }: ApiContext, beats: Beats): Promise<Map<Uuid, BeatOutcome>> {
  const answers = new Map<Uuid, BeatOutcome>();
  let left = beats;
  for (let tries = 1; left.length > 0 && tries <= TRIES; tries++) {
    if (tries > 1) await clock.sleep(PAUSE_MS);
    const outcomes = await heartbeat(authority, left);
    for (const [i, { runId }] of left.entries()) answers.set(runId, outcomes[i]!);
    left = left.filter(({ runId }) => answers.get(runId)!.kind === "busy");
  }
  return answers;
}
