import type { FieldFault } from "../../client/errors.ts";

/** One fault of one field, for who typed options: the field, the option that fills it, what was found, what is allowed. */
export function sentenceOf(fault: FieldFault): string {
  const option = optionOf(fault.field);
  const { found, allowed, didYouMean } = fault;
  const message = fault.message.replace(/\.$/, "");
  return [
    `${fault.field}${option === undefined ? "" : ` (${option})`}: ${message}`,
    found === undefined || found === "nothing" || message.includes(found) ? "" : `; found: ${found}`,
    allowed === undefined ? "" : `; allowed: ${asCommand(allowed.replace(/\.$/, ""))}`,
    didYouMean === undefined ? "" : ` (${adviceOf(didYouMean)})`,
  ].join("");
}

/** What the API calls by path is a command here. */
function asCommand(text: string): string {
  return text.replace("PUT /v1/calendars/{name}", "punctual calendars put");
}

/** A word that was meant, or what to do. */
function adviceOf(suggestion: string): string {
  return suggestion.startsWith("set `") ? suggestion : `did you mean "${suggestion}"?`;
}

const OPTIONS: Readonly<Record<string, string>> = {
  after: "--after",
  allowedJobs: "--jobs",
  apiBurst: "--api-burst",
  apiRatePerSecond: "--api-rate",
  calendars: "--calendar",
  class: "--class",
  description: "--description",
  events: "--event",
  expiresInDays: "--expires-in-days",
  from: "--from",
  job: "--job",
  key: "--schedule-key",
  html: "--html",
  label: "--label",
  labels: "--label",
  lateAfterMs: "--late-after",
  limit: "--limit",
  maxRunning: "--max-running",
  minIntervalMs: "--min-interval",
  name: "--name",
  payload: "--payload",
  payloadBytes: "--payload-bytes",
  misfire: "--misfire",
  note: "--note",
  onInfeasible: "--on-infeasible",
  queuedRuns: "--queued-runs",
  requestedRunsPerDay: "--runs-per-day",
  role: "--role",
  scheduleId: "--schedule",
  scheduleIds: "--schedule",
  schedules: "--schedules",
  startRatePerSecond: "--start-rate",
  state: "--state",
  status: "--status",
  subject: "--subject",
  text: "--text",
  to: "--to",
  trigger: "--trigger",
  weight: "--weight",
  zone: "--tz",
};

/** Of a rule, the fields of a cron expression are the rest. */
const RULE_OPTIONS: Readonly<Record<string, string>> = {
  anchorAt: "--anchor",
  at: "--at",
  delayMs: "--after-completion",
  every: "--every",
  zone: "--tz",
};

function optionOf(field: string): string | undefined {
  const inRule = /^rule\.(\w+)/.exec(field)?.[1];
  if (inRule !== undefined) return RULE_OPTIONS[inRule] ?? "--cron";
  const ofOutbound = /^outbound\.(allow|hosts|ports)/.exec(field)?.[1];
  if (ofOutbound !== undefined) return `--outbound-${ofOutbound}`;
  return OPTIONS[/^\w+/.exec(field)?.[0] ?? ""];
}
