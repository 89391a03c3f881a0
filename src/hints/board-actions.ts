/**
 * What may be done to hints from the board, by Bull Board's own routes. A hint is transport: taking one away costs
 * latency until a sweeper publishes its row again, repeating one is a duplicate that the claim sees through. So these
 * are allowed. Everything else is not, and what a later Bull Board adds is not either:
 *
 * - pausing, concurrency, rate limits and delays would park a tenant behind PostgreSQL's back, which would go on
 *   promising its runs in time; limits are quotas, and schedules are paused by the API. Resuming is the way out of a
 *   pause that came from elsewhere.
 * - adding a hint or changing its data could name rows of another tenant; a priority is the lane that the relay chose.
 * - obliterating takes the queue's limits along; schedulers and children are no business of hints.
 */
const ACTIONS: Readonly<Record<string, BoardAction["action"]>> = {
  "/api/queues/:queueName/retry/:queueStatus": "retry-all",
  "/api/queues/:queueName/:jobId/retry": "retry",
  "/api/queues/:queueName/promote": "promote-all",
  "/api/queues/:queueName/:jobId/promote": "promote",
  "/api/queues/:queueName/clean/:queueStatus": "clean",
  "/api/queues/:queueName/:jobId/clean": "remove",
  "/api/queues/:queueName/empty": "empty",
  "/api/queues/:queueName/resume": "resume",
};

export type BoardAction = {
  action: "retry-all" | "retry" | "promote-all" | "promote" | "clean" | "remove" | "empty" | "resume";
  class: string;
  hintId?: string;
  /** Of the hints that are meant, where they are many. */
  status?: string;
};

/** BullMQ makes a key of whatever it is given here: no other word may get through. */
export const STATUSES: ReadonlySet<string> = new Set([
  "active",
  "completed",
  "delayed",
  "failed",
  "prioritized",
  "wait",
  "waiting",
]);

export function actionOf(route: string | readonly string[]): BoardAction["action"] | undefined {
  return typeof route === "string" ? ACTIONS[route] : undefined;
}
