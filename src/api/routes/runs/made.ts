import { z } from "zod";
import type { RunMade } from "../../../authority/runs/run-now.ts";
import { showId } from "../../../kernel/ids.ts";
import type { ApiContext } from "../../context.ts";
import { keyReused } from "../../input/request-key.ts";
import { Problem } from "../../problems/problem.ts";
import { quotaProblem } from "../../problems/quota.ts";
import { noSuchSchedule } from "../../resolve.ts";
import type { Answer, Reply } from "../../route.ts";

export const madeRunAnswer: Answer = {
  kind: "created",
  description: "The run, also when an earlier request with this key made it",
  schema: z.strictObject({ runId: z.string(), state: z.string() }),
};

/** The answer to a run-now or ad hoc run. */
export function replyWithRun(context: ApiContext, outcome: RunMade, scheduleRef: string): Reply {
  switch (outcome.kind) {
    case "created":
    case "repeated": {
      const runId = showId("run", outcome.runId);
      return {
        kind: "created",
        headers: {
          location: `/v1/runs/${runId}`,
          ...(outcome.kind === "repeated" ? { "idempotency-replayed": "true" } : {}),
        },
        body: { runId, state: outcome.state },
      };
    }
    case "key-reused":
      throw keyReused();
    case "quota":
    case "unfit":
      throw quotaProblem(context, outcome);
    case "overlap":
      throw new Problem("overlap", "A run of this schedule is open, and its overlap policy is skip");
    case "deleted":
      throw new Problem("schedule-not-active", "The schedule is deleted", { more: { status: "deleted" } });
    case "not-found":
      throw noSuchSchedule(scheduleRef);
  }
}
