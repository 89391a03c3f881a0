import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { containerMetrics } from "./container-metrics.ts";
import { webhookMetrics } from "./webhook-metrics.ts";

/**
 * Every metric of Punctual, in one place; docs/metrics.md is compared with it by a test.
 * Times are seconds, as Prometheus asks.
 */
export type Metrics = ReturnType<typeof createMetrics>;

const LATENESS_BUCKETS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 3600];
const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 1, 5, 15, 60, 300, 900, 3600, 10800];
const VERB_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    lateness: new Histogram({
      name: "punctual_run_lateness_seconds",
      help: "Due (or admitted, if later) to first start, of all admitted runs",
      labelNames: ["class", "held_by"] as const,
      buckets: LATENESS_BUCKETS,
      registers,
    }),
    missedStarts: new Counter({
      name: "punctual_missed_starts_total",
      help: "Admitted runs that did not start by their start deadline, and will not",
      labelNames: ["class", "held_by"] as const,
      registers,
    }),
    duration: new Histogram({
      name: "punctual_attempt_duration_seconds",
      help: "Execution time of an attempt in its handler",
      labelNames: ["class", "job", "outcome"] as const,
      buckets: DURATION_BUCKETS,
      registers,
    }),
    runsEnded: new Counter({
      name: "punctual_runs_ended_total",
      help: "Runs that reached a terminal state",
      labelNames: ["class", "state"] as const,
      registers,
    }),
    runsMaterialized: new Counter({
      name: "punctual_runs_materialized_total",
      help: "Runs and skips written by materialize",
      labelNames: ["kind"] as const,
      registers,
    }),
    claims: new Counter({
      name: "punctual_claims_total",
      help: "Outcomes of claims, per run or hint",
      labelNames: ["outcome"] as const,
      registers,
    }),
    staleCompletions: new Counter({
      name: "punctual_stale_completions_total",
      help: "Completions and failures refused because another attempt holds the fence",
      labelNames: ["verb"] as const,
      registers,
    }),
    expiredLeases: new Counter({
      name: "punctual_expired_leases_total",
      help: "Attempts whose lease ran out",
      registers,
    }),
    passes: new Counter({
      name: "punctual_passes_total",
      help: "Passes of background loops",
      labelNames: ["loop", "outcome"] as const,
      registers,
    }),
    passSeconds: new Histogram({
      name: "punctual_pass_seconds",
      help: "How long passes of background loops took",
      labelNames: ["loop"] as const,
      buckets: VERB_BUCKETS,
      registers,
    }),
    verbSeconds: new Histogram({
      name: "punctual_verb_seconds",
      help: "How long verbs (one batch transaction) took",
      labelNames: ["verb"] as const,
      buckets: VERB_BUCKETS,
      registers,
    }),
    verbFaults: new Counter({
      name: "punctual_verb_faults_total",
      help: "Verbs that threw, by SQLSTATE class or error code",
      labelNames: ["verb", "code"] as const,
      registers,
    }),
    hintsPublished: new Counter({
      name: "punctual_hints_published_total",
      help: "Hints handed to Redis",
      labelNames: ["class"] as const,
      registers,
    }),
    hintsLost: new Counter({
      name: "punctual_hints_lost_total",
      help: "Published hints that Redis no longer had, published again",
      registers,
    }),
    repairs: new Counter({
      name: "punctual_repairs_total",
      help: "Rows a sweeper had to put right",
      labelNames: ["kind"] as const,
      registers,
    }),
    operationSteps: new Counter({
      name: "punctual_operation_steps_total",
      help: "Steps of long operations, by what came of them",
      labelNames: ["kind", "outcome"] as const,
      registers,
    }),
    operationsOpen: new Gauge({
      name: "punctual_operations_open",
      help: "Long operations that are not finished",
      registers,
    }),
    replays: new Counter({
      name: "punctual_replays_total",
      help: "Runs that were given up and opened again by a person",
      registers,
    }),
    deadLetters: new Gauge({
      name: "punctual_dead_letters_open",
      help: "Runs that were given up and that nobody has decided about; counted up to 10,000",
      registers,
    }),
    deadLetterAge: new Gauge({
      name: "punctual_dead_letter_oldest_age_seconds",
      help: "Age of the oldest dead letter that nobody has decided about",
      registers,
    }),
    effectsSettled: new Counter({
      name: "punctual_effects_total",
      help: "What came of attempts to send effects: sent, retry, uncertain, failed or resolved",
      labelNames: ["kind", "outcome"] as const,
      registers,
    }),
    effectSeconds: new Histogram({
      name: "punctual_effect_send_seconds",
      help: "How long attempts to send effects took",
      labelNames: ["kind"] as const,
      buckets: VERB_BUCKETS,
      registers,
    }),
    effectsOverdue: new Gauge({
      name: "punctual_effect_oldest_due_age_seconds",
      help: "How long the oldest effect that may be sent has been waiting for it",
      labelNames: ["kind"] as const,
      registers,
    }),
    effectsUncertain: new Gauge({
      name: "punctual_effects_uncertain",
      help: "Effects of which nobody knows whether they happened, waiting for a person (10,000 at most are counted)",
      labelNames: ["kind"] as const,
      registers,
    }),
    ...webhookMetrics(registers, VERB_BUCKETS),
    objectsDeleted: new Counter({
      name: "punctual_objects_deleted_total",
      help: "Objects whose bytes were deleted: orphan, expired, again, stray, broken-upload",
      labelNames: ["why"] as const,
      registers,
    }),
    objectBytesDeleted: new Counter({
      name: "punctual_object_bytes_deleted_total",
      help: "Bytes of the objects among them that the registry knew",
      registers,
    }),
    objectDeletionsFailed: new Counter({
      name: "punctual_object_deletions_failed_total",
      help: "Deletions that the object store refused or did not answer; they are tried again",
      labelNames: ["code"] as const,
      registers,
    }),
    objectsUnknown: new Gauge({
      name: "punctual_objects_of_unknown_runs",
      help: "Objects in the store of runs that this database does not know, by the last look; they are left alone",
      registers,
    }),
    blocked: new Counter({
      name: "punctual_event_loop_blocked_total",
      help: "Times that the event loop of a worker was blocked for PUNCTUAL_BLOCKED_MS or longer",
      registers,
    }),
    blockedLongest: new Gauge({
      name: "punctual_event_loop_blocked_longest_seconds",
      help: "The longest of them",
      registers,
    }),
    threads: new Gauge({
      name: "punctual_threads",
      help: "Threads of this worker in which jobs compute: busy, or waited for by running attempts",
      labelNames: ["state"] as const,
      registers,
    }),
    attemptLogBytes: new Counter({
      name: "punctual_attempt_log_bytes_total",
      help: "Bytes of attempts' logs: kept, or dropped before they could be stored",
      labelNames: ["outcome"] as const,
      registers,
    }),
    attemptLogFailures: new Counter({
      name: "punctual_attempt_log_failures_total",
      help: "Pieces of attempts' logs that could not be stored (they are tried again), and logs that were given up",
      labelNames: ["why"] as const,
      registers,
    }),
    queuedAge: new Gauge({
      name: "punctual_oldest_queued_age_seconds",
      help: "Age of the oldest run that is due and not yet started",
      labelNames: ["class"] as const,
      registers,
    }),
    outboxAge: new Gauge({
      name: "punctual_outbox_oldest_age_seconds",
      help: "Age of the oldest available outbox row that is not published",
      registers,
    }),
    scanLag: new Gauge({
      name: "punctual_scan_lag_seconds",
      help: "How far the oldest due cursor is behind",
      registers,
    }),
    slotsInUse: new Gauge({
      name: "punctual_slots_in_use",
      help: "Slots of this worker that hold a running attempt",
      labelNames: ["class"] as const,
      registers,
    }),
    partitionDays: new Gauge({
      name: "punctual_partition_days_ahead",
      help: "Days ahead for which partitions of runs exist",
      registers,
    }),
    redisUp: new Gauge({
      name: "punctual_redis_up",
      help: "1 while Redis answers, 0 while dispatch is direct",
      registers,
    }),
    tzInfo: new Gauge({
      name: "punctual_tz_info",
      help: "1 for the version of the tz database that this process goes by",
      labelNames: ["version"] as const,
      registers,
    }),
    tzBehind: new Gauge({
      name: "punctual_schedules_behind_tz",
      help: "Of the next 10,000 due schedules, those that an adopted tz database moves and that are not planned anew yet",
      registers,
    }),
    schedulesReplanned: new Counter({
      name: "punctual_schedules_replanned_total",
      help: "Schedules planned anew before they were due, because a tz database was adopted",
      registers,
    }),
    faultySchedules: new Gauge({
      name: "punctual_schedules_with_fault",
      help: "Schedules that make no runs because their rule cannot be computed at the moment",
      registers,
    }),
    ...containerMetrics(registers),
    quotaRefusals: new Counter({
      name: "punctual_quota_refusals_total",
      help: "Requests refused because of a quota of the tenant, by quota",
      labelNames: ["quota"] as const,
      registers,
    }),
    httpRefusals: new Counter({
      name: "punctual_http_refusals_total",
      help: "HTTP calls of nobody we know (`unauthenticated`) and of who may not (`forbidden`)",
      labelNames: ["code"] as const,
      registers,
    }),
    httpSeconds: new Histogram({
      name: "punctual_http_seconds",
      help: "HTTP calls by route and status class",
      labelNames: ["route", "status"] as const,
      buckets: VERB_BUCKETS,
      registers,
    }),
  };
}
