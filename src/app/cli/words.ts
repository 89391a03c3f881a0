import type { Count, Job, Rule, Schedule, ScheduleNames } from "../../client/types.ts";
import { readBrokerUrl } from "../../domain/jobs/broker-url.ts";

/** How tables say things. No clock and no zone of this machine is asked: instants are the server's. */

/** `2026-11-30T09:00:00-05:00[America/New_York]` as people read it. */
export function showLocal(local: string): string {
  const parts = /^(\d{4}-\d\d-\d\d)T([\d:.]+)([+-]\d\d:\d\d|Z)\[(.+)\]$/.exec(local);
  return parts === null ? local : `${parts[1]} ${parts[2]} ${parts[3]} ${parts[4]}`;
}

/** RFC 3339 in UTC as people read it. */
export function showUtc(instant: string | null): string {
  return instant === null ? "" : instant.replace("T", " ").replace(/(\.\d+)?Z$/, "Z");
}

export function showRule(rule: Rule): string {
  const zone = rule.zone === undefined ? "" : ` ${rule.zone}`;
  if (rule.kind === "cron") return `${rule.expression}${zone}`;
  if (rule.kind === "interval") return `every ${showInterval(rule)}`;
  if (rule.kind === "once") return `once at ${rule.at}${zone}`;
  if (rule.kind === "dates") return `once at each of ${(rule.at as unknown[]).length} dates${zone}`;
  if (rule.kind === "afterCompletion") return `${showDuration(rule.delayMs as number)} after the last run ended`;
  if (rule.kind === "anyOf") return (rule.rules as Rule[]).map(showRule).join(", or ");
  return rule.kind;
}

function showInterval(rule: Rule): string {
  const every = rule.every as { n: number; unit: string } | undefined;
  if (every === undefined) return showDuration(rule.everyMs as number);
  return every.n === 1 ? every.unit.replace(/s$/, "") : `${every.n} ${every.unit}`;
}

const DURATIONS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** `45 s`, `90 min`, `2 h`: in the largest unit that says it whole. */
export function showDuration(ms: number): string {
  const [unit, size] = DURATIONS.find(([, one]) => ms > 0 && ms % one === 0) ?? ["ms", 1];
  return `${ms / size} ${unit}`;
}

export function showNext(schedule: Schedule): string {
  if (schedule.fault !== null) return `cannot be computed: ${schedule.fault.message}`;
  if (schedule.status === "paused") return "when it is resumed";
  return schedule.nextRun === null ? "" : showLocal(schedule.nextRun.local);
}

/** A schedule as it can be typed back, or else by its name; empty where there is none. */
export function showScheduleOf({ schedule }: { schedule: ScheduleNames | null }): string {
  return schedule === null ? "" : schedule.key === null ? schedule.name : `key:${schedule.key}`;
}

/** One schedule that something belongs to: all it is called by. */
export function showScheduleInFull(one: { scheduleId: string | null; schedule: ScheduleNames | null }): string | null {
  const { scheduleId, schedule } = one;
  if (schedule === null) return scheduleId;
  return [scheduleId, schedule.key === null ? "" : `key:${schedule.key}`, schedule.name].filter(Boolean).join("  ");
}

/** How much later than due and admitted something started. */
export function showLateness(run: { dueAt: string; admittedAt: string; startedAt: string | null }): string {
  if (run.startedAt === null) return "";
  const late = Date.parse(run.startedAt) - Math.max(Date.parse(run.dueAt), Date.parse(run.admittedAt));
  return showMs(Math.max(0, Math.round(late)));
}

/**
 * What a job is, in few words: `report.run-summary@1`, `http POST https://api.example.com/reports`. Of a definition, never of
 * what is filled into it; without a query, and without who is at a broker.
 */
export function showJob(job: Job | null): string {
  if (job === null) return "";
  const { kind, name, version, method = "POST", url, image } = job;
  // As --job takes it.
  if (name !== undefined) return `${kind === "remote" ? "remote:" : ""}${name}@${version}`;
  if (kind === "http") return `http ${method} ${String(url).replace(/[?#].*$/s, "")}`;
  if (kind === "container") return `container ${image}`;
  return kind === "queue" ? `queue ${job.broker} ${showQueue(job)}` : kind;
}

/** The same for a column of a list. */
export function showJobShort(job: Job | null): string {
  const whole = showJob(job);
  return whole.length <= LONGEST_IN_LIST ? whole : `${whole.slice(0, LONGEST_IN_LIST - 1)}…`;
}

const LONGEST_IN_LIST = 60;

/** To the default exchange of AMQP a routing key is the name of a queue. */
function showQueue({ broker, queue, exchange, routingKey, url }: Job): string {
  const to = broker === "bullmq" ? [queue] : [exchange, routingKey].filter((one) => one !== "" && one !== undefined);
  const { host, port } = readBrokerUrl(String(url)) ?? {};
  const place = host === undefined ? [] : [`@${host.includes(":") ? `[${host}]` : host}:${port}`];
  return [...to, ...place].join(" ");
}

/** Of a second and more, seconds. */
export function showMs(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}

/** Counts are not taken to any length. */
export function showCount({ value, capped }: Count): string {
  return capped ? `at least ${value}` : String(value);
}

export function showBytes(size: number): string {
  if (size < 1000) return `${size} bytes`;
  return size < 1_000_000 ? `${(size / 1000).toFixed(1)} kB` : `${(size / 1_000_000).toFixed(1)} MB`;
}
