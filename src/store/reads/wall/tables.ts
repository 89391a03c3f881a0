/**
 * The second wall: what the role `punctual_reader` sees. Reads of the API run as that role, with the caller's tenant set
 * for their transaction, so that a query that forgets its tenant finds the caller's rows and no others. A table that is
 * not here cannot be read by it at all.
 */
export const READER = "punctual_reader";

/** Null, and so nothing, where no tenant is set. A subquery, so that it is worked out once for a statement. */
const TENANT = "(select nullif(current_setting('punctual.tenant', true), '')::uuid)";

/**
 * `coalesce` keeps these out of the choice of an index: queries name their tenant themselves, and are planned as if
 * there were no wall. `offset 0` keeps a look at the parent one look for a row; the parent's own policy tells whose it is.
 */
const own = (column: string) => `coalesce(${column} = ${TENANT}, false)`;
const through = (parent: string, where: string) => `exists (select from ${parent} parent where ${where} offset 0)`;
const ofSchedule = through("schedule", "parent.id = schedule_id");
const ofRun = (at: string) => through("run", `parent.scheduled_at = ${at} and parent.id = run_id`);

export type Opening = {
  /** Which rows; absent: all of them, and `why` that harms nobody. */
  rows?: string;
  why?: string;
  /** Absent: all columns. */
  hidden?: readonly string[];
};

export const OPENINGS: Readonly<Record<string, Opening>> = {
  tenant: { rows: own("id") },
  api_key: { rows: own("tenant_id"), hidden: ["secret_hash"] },
  signing_key: { rows: own("tenant_id"), hidden: ["sealed"] },
  email_template: { rows: own("tenant_id") },
  webhook_endpoint: { rows: own("tenant_id") },
  webhook_delivery: { rows: own("tenant_id") },
  quota: { rows: own("tenant_id") },
  tenant_quota: { rows: own("tenant_id") },
  tenant_day: { rows: own("tenant_id") },
  calendar: { rows: own("tenant_id") },
  calendar_head: { rows: own("tenant_id") },
  calendar_use: { rows: own("tenant_id") },
  audit_event: { rows: own("tenant_id") },
  schedule: { rows: own("tenant_id") },
  schedule_cursor: { rows: own("tenant_id") },
  schedule_revision: { rows: ofSchedule },
  chain: { rows: ofSchedule },
  skip_range: { rows: own("tenant_id") },
  run: { rows: own("tenant_id") },
  attempt: { rows: ofRun("attempt.scheduled_at") },
  attempt_log: { rows: ofRun("instant_of(run_id)") },
  live_run: { rows: own("tenant_id") },
  usage: { rows: own("tenant_id") },
  object: { rows: own("tenant_id") },
  effect: { rows: own("tenant_id") },
  effect_attempt: { rows: through("effect", "parent.id = effect_id") },
  dead_letter: { rows: own("tenant_id") },
  dead_letter_resolution: { rows: ofRun("instant_of(run_id)") },
  request_key: { rows: `${own("scope")} or ${through("schedule", "parent.id = scope")}` },
  operation: { rows: own("tenant_id") },
  rollup: { rows: own("tenant_id") },
  history_floor: { why: "one instant, the same for everybody" },
  // Ours are everybody's: by their slots and durations is quoted what a schedule may expect.
  worker: { rows: `tenant_id is null or ${own("tenant_id")}` },
};
