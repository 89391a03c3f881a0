import type { Payload } from "../domain/definition.ts";
import { FilledTooLong, type JobFacts } from "../domain/jobs/template.ts";
import type { Instant } from "../kernel/clock.ts";
import type { JobContext } from "./context.ts";
import type { JobFailure } from "./outcome.ts";

/** What placeholders of a job stand for in this attempt. */
export function jobFactsOf({ run }: Pick<JobContext, "run">, payload: Payload): JobFacts {
  const { id, scheduleId, scheduledAt, dueAt, attempt, fence } = run;
  return {
    run: {
      id,
      scheduleId,
      scheduledAt: showInstant(scheduledAt),
      dueAt: showInstant(dueAt),
      attempt,
      fence: String(fence),
    },
    payload,
  };
}

/** RFC 3339 in UTC. */
export const showInstant = (at: Instant) => new Date(Math.floor(at)).toISOString();

/** What `fill` makes of templates. @throws what `failure` makes of the reason, where there is no room for that */
export function filledIn<T>(failure: (why: string) => JobFailure, fill: () => T): T {
  try {
    return fill();
  } catch (error) {
    throw error instanceof FilledTooLong ? failure(error.message) : error;
  }
}
