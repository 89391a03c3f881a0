import { randomUUID } from "node:crypto";
import { type Audit, auditOf } from "./audit.ts";
import { type DeadLetters, deadLettersOf } from "./dead-letters.ts";
import { type Effects, effectsOf } from "./effects.ts";
import { type EmailTemplates, emailTemplatesOf } from "./email-templates.ts";
import { bodyOf, type ClientOptions, createHttp, pathOf } from "./http.ts";
import {
  type ApiKeys,
  apiKeysOf,
  type Me,
  type SigningKeys,
  signingKeysOf,
  type Tenants,
  tenantsOf,
} from "./identity.ts";
import { type LogQuery, logsOf, type RunLog } from "./logs.ts";
import { type Backfill, backfillOf, type Operations, operationsOf } from "./operations.ts";
import { type Previews, previewsOf } from "./previews.ts";
import { type QuotasClient, quotasOf, type Usage } from "./quotas.ts";
import type { Stats, StatsPeriod } from "./stats.ts";
import type {
  Attempt,
  Calendar,
  CalendarDraft,
  CalendarPage,
  Ledger,
  ResultLink,
  Run,
  RunDraft,
  RunMade,
  RunPage,
  Schedule,
  ScheduleChange,
  ScheduleDeleted,
  ScheduleDraft,
  SchedulePage,
  ScheduleResumed,
} from "./types.ts";
import { type Webhooks, webhooksOf } from "./webhooks.ts";
import { type Workers, workersOf } from "./workers.ts";

export type ScheduleFilters = {
  status?: string;
  fault?: boolean;
  label?: string;
  /** The one that a create with this idempotency key made; an ApiProblem `not-accepted` says that none did. */
  requestKey?: string;
  limit?: number;
  after?: string;
};
export type RunFilters = {
  /** As for schedules; with `scheduleId`, that of a run-now. */
  requestKey?: string;
  scheduleId?: string;
  state?: string;
  class?: string;
  trigger?: string;
  /** `name=value`: of schedules that have this label now. */
  label?: string;
  order?: string;
  from?: string;
  to?: string;
  limit?: number;
  after?: string;
};

export type LedgerPeriod = { from?: string; to?: string; limit?: number; after?: string };

/**
 * A client of the HTTP API. Schedules are named by id or by `key:<key>`. Lists answer one page; pass its `next` as
 * `after`. Throws ApiProblem when the API refuses, NoAnswer when there is none.
 */
export type Client = {
  schedules: Previews & {
    list(filters?: ScheduleFilters): Promise<SchedulePage>;
    get(schedule: string): Promise<Schedule>;
    /** Safe to call again with the same `idempotencyKey` after a doubtful end; without one, one is made for this call. */
    create(draft: ScheduleDraft, idempotencyKey?: string): Promise<Schedule>;
    /** Changes the fields that are given. After a doubtful end, `revision-conflict` may mean that the call before did it. */
    edit(schedule: string, change: Partial<ScheduleDraft> & { expectedRevision: number }): Promise<Schedule>;
    pause(schedule: string, note?: string): Promise<ScheduleChange>;
    /** `misfire`: what becomes of the instants missed, in place of the schedule's policy. */
    resume(schedule: string, choice?: { misfire?: string; note?: string }): Promise<ScheduleResumed>;
    /** After a doubtful end, `not-found` may mean that the call before did it. */
    delete(schedule: string): Promise<ScheduleDeleted>;
    /** Runs it now, once for an `idempotencyKey`; without one, one is made for this call. */
    run(schedule: string, idempotencyKey?: string): Promise<RunMade>;
    /** What running past instants would do, or (`dryRun: false`) the operation that does it. */
    backfill: Backfill;
    /** Every nominal instant of a period, the last day by default. */
    ledger(schedule: string, period?: LedgerPeriod): Promise<Ledger>;
  };
  /** Business calendars, by name. */
  calendars: {
    list(page?: { limit?: number; after?: string }): Promise<CalendarPage>;
    /** The version in force, or the one asked for. */
    get(calendar: string, version?: number | string): Promise<Calendar>;
    /** Safe to call again after a doubtful end: the same days change nothing. */
    put(calendar: string, draft: CalendarDraft): Promise<Calendar>;
    /** After a doubtful end, `not-found` may mean that the call before did it. */
    delete(calendar: string): Promise<{ name: string; version: number }>;
    /** Newest first, of a deleted calendar too. */
    versions(calendar: string, page?: { limit?: number; after?: string }): Promise<CalendarPage>;
  };
  /** Runs that were given up, until a person has decided about them. */
  deadLetters: DeadLetters;
  /** Long work, such as what `schedules.backfill` begins. */
  operations: Operations;
  /** What happened to the tenant's runs; by the minute, of the last hour, where nothing else is asked. */
  stats(period?: StatsPeriod): Promise<Stats>;
  /** What the tenant may have and use, and what it does use. */
  quotas: QuotasClient;
  usage(): Promise<Usage>;
  /** Emails and webhooks of accepted results. */
  effects: Effects;
  /** Keys of the tenant; for owners and admins. */
  apiKeys: ApiKeys;
  /** What emails of effects say, by name. */
  emailTemplates: EmailTemplates;
  /** Servers that are told of what happens to runs. */
  webhooks: Webhooks;
  /** Who was heard of lately. */
  workers: Workers;
  signingKeys: SigningKeys;
  tenants: Tenants;
  me(): Promise<Me>;
  /** Who changed what. */
  audit: Audit;
  runs: {
    list(filters?: RunFilters): Promise<RunPage>;
    get(run: string): Promise<Run>;
    attempts(run: string): Promise<Attempt[]>;
    result(run: string): Promise<ResultLink>;
    /** What an attempt (the latest, if none is named) has said so far. Its text is read as it comes, and not repeated. */
    logs(run: string, part?: LogQuery): Promise<RunLog>;
    /** Runs a job once, without a schedule; once for an `idempotencyKey`. */
    create(draft: RunDraft, idempotencyKey?: string): Promise<RunMade>;
    /** `accepted`: it is canceled; else its worker is told, or, where it is detached, nobody: see `callbackDueAt`. */
    cancel(run: string): Promise<{ runId: string; requested: true; accepted: boolean; callbackDueAt: string | null }>;
  };
};

export function createClient(options: ClientOptions): Client {
  const http = createHttp(options);
  return {
    schedules: {
      ...previewsOf(http),
      list: (filters = {}) => http.call({ path: "/v1/schedules", query: filters }),
      get: (schedule) => http.call({ path: pathOf`/v1/schedules/${schedule}` }),
      create: (draft, idempotencyKey = randomUUID()) =>
        http.call({
          method: "POST",
          path: "/v1/schedules",
          headers: { "idempotency-key": idempotencyKey },
          body: bodyOf(draft),
        }),
      edit: (schedule, change) =>
        http.call({ method: "PATCH", path: pathOf`/v1/schedules/${schedule}`, body: bodyOf(change) }),
      pause: (schedule, note) =>
        http.call({ method: "POST", path: pathOf`/v1/schedules/${schedule}/pause`, body: JSON.stringify({ note }) }),
      resume: (schedule, choice = {}) =>
        http.call({ method: "POST", path: pathOf`/v1/schedules/${schedule}/resume`, body: JSON.stringify(choice) }),
      delete: (schedule) => http.call({ method: "DELETE", path: pathOf`/v1/schedules/${schedule}` }),
      run: (schedule, idempotencyKey = randomUUID()) =>
        http.call({
          method: "POST",
          path: pathOf`/v1/schedules/${schedule}/runs`,
          headers: { "idempotency-key": idempotencyKey },
          body: "{}",
        }),
      backfill: backfillOf(http),
      ledger: (schedule, period = {}) => http.call({ path: pathOf`/v1/schedules/${schedule}/ledger`, query: period }),
    },
    calendars: {
      list: (page = {}) => http.call({ path: "/v1/calendars", query: page }),
      get: (calendar, version) => http.call({ path: pathOf`/v1/calendars/${calendar}`, query: { version } }),
      put: (calendar, draft) =>
        http.call({ method: "PUT", path: pathOf`/v1/calendars/${calendar}`, body: JSON.stringify(draft) }),
      delete: (calendar) => http.call({ method: "DELETE", path: pathOf`/v1/calendars/${calendar}` }),
      versions: (calendar, page = {}) => http.call({ path: pathOf`/v1/calendars/${calendar}/versions`, query: page }),
    },
    deadLetters: deadLettersOf(http),
    operations: operationsOf(http),
    stats: (period = {}) => http.call({ path: "/v1/stats", query: period }),
    quotas: quotasOf(http),
    usage: () => http.call({ path: "/v1/usage" }),
    effects: effectsOf(http),
    apiKeys: apiKeysOf(http),
    emailTemplates: emailTemplatesOf(http),
    webhooks: webhooksOf(http),
    workers: workersOf(http),
    signingKeys: signingKeysOf(http),
    tenants: tenantsOf(http),
    me: () => http.call({ path: "/v1/me" }),
    audit: auditOf(http),
    runs: {
      list: (filters = {}) => http.call({ path: "/v1/runs", query: filters }),
      get: (run) => http.call({ path: pathOf`/v1/runs/${run}` }),
      async attempts(run) {
        return (await http.call<{ items: Attempt[] }>({ path: pathOf`/v1/runs/${run}/attempts` })).items;
      },
      result: (run) => http.call({ path: pathOf`/v1/runs/${run}/result` }),
      logs: logsOf(http),
      create: (draft, idempotencyKey = randomUUID()) =>
        http.call({
          method: "POST",
          path: "/v1/runs",
          headers: { "idempotency-key": idempotencyKey },
          body: bodyOf(draft),
        }),
      cancel: (run) => http.call({ method: "POST", path: pathOf`/v1/runs/${run}/cancel`, body: "{}" }),
    },
  };
}
