import { boundsOf } from "../../domain/bounds.ts";
import type { Definition, Payload } from "../../domain/definition.ts";
import { leastGap } from "../../domain/quotas/least-gap.ts";
import {
  dayOf,
  type Excess,
  RETRY_QUEUED_MS,
  RETRY_SCHEDULES_MS,
  type TenantQuotas,
  type Unfit,
  untilNextDay,
} from "../../domain/quotas/tenant.ts";
import { compileRule } from "../../domain/recurrence/compile.ts";
import { bytesAsSent } from "../../domain/secrets/size.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { findTenantQuotas } from "../../store/reads/tenants/quotas.ts";
import {
  addRequestedRuns,
  countQueuedRuns,
  countSchedules,
  lockTenantQuotas,
  readRequestedRuns,
} from "../../store/rows/tenants/quotas.ts";
import type { Authority } from "../authority.ts";

/**
 * Whether a tenant may have one more. Who is limited waits here for its own other requests, whose commits are then in
 * what is counted: so a limit is exact. Who is not, reads one row. Locks tenant_quota, behind request_key and operation.
 */

/** A request that a quota stands against: more than there may be, or asking for what may never be. */
export type QuotaRefusal = { kind: "quota"; excess: Excess } | { kind: "unfit"; unfit: Unfit };

type Content = { definition?: Definition; payload: Payload };

/** What stands against one more schedule; undefined for nothing. */
export async function refusalOfSchedule(
  authority: Authority,
  tx: Transaction,
  tenantId: Uuid,
  content: Content,
): Promise<QuotaRefusal | undefined> {
  const quotas = await findTenantQuotas(tx, tenantId);
  if (quotas === undefined) return undefined;
  const unfit = await unfitOf(authority, tx, quotas, content, undefined);
  if (unfit !== undefined) return { kind: "unfit", unfit };
  if (quotas.schedules === null) return undefined;
  // Another limit may have been set since; the one that counts is the one under the lock.
  const limit = (await lockTenantQuotas(tx, tenantId, "schedules"))?.schedules ?? null;
  if (limit === null) return undefined;
  const used = await countSchedules(tx, tenantId, limit);
  if (used < limit) return undefined;
  return { kind: "quota", excess: { quota: "schedules", limit, used, retryAfterMs: RETRY_SCHEDULES_MS } };
}

/** What stands against a change of a schedule; what it had before, it may keep. */
export async function refusalOfChange(
  authority: Authority,
  tx: Transaction,
  tenantId: Uuid,
  content: Content,
  before: Content,
): Promise<QuotaRefusal | undefined> {
  const quotas = await findTenantQuotas(tx, tenantId);
  const unfit = quotas === undefined ? undefined : await unfitOf(authority, tx, quotas, content, before);
  return unfit === undefined ? undefined : { kind: "unfit", unfit };
}

/** What stands against a run that somebody asks for, with a payload of its own or without; takes room for it otherwise. */
export async function refusalOfRun(
  tx: Transaction,
  tenantId: Uuid,
  payload: Payload | undefined,
): Promise<QuotaRefusal | undefined> {
  const quotas = await findTenantQuotas(tx, tenantId);
  if (quotas === undefined) return undefined;
  const unfit = payload === undefined ? undefined : unfitPayload(quotas, { payload }, undefined);
  if (unfit !== undefined) return { kind: "unfit", unfit };
  const room = await lockRoomForRuns(tx, tenantId);
  if (room.most < 1) return { kind: "quota", excess: room.excess! };
  await countRequested(tx, tenantId, room, 1);
  return undefined;
}

/** How many runs may be asked for now; what limits them, where that is less than there is. */
export type RoomForRuns = {
  readonly most: number;
  readonly excess: Excess | undefined;
  /** Undefined where nobody counts. */
  readonly limited: { readonly quotas: TenantQuotas; readonly day: string } | undefined;
};

export async function lockRoomForRuns(tx: Transaction, tenantId: Uuid): Promise<RoomForRuns> {
  const quotas = await lockTenantQuotas(tx, tenantId, "runs");
  if (quotas === undefined) return { most: Number.POSITIVE_INFINITY, excess: undefined, limited: undefined };
  const nowAt = await tx.authorityNow();
  const found = [await roomInQueue(tx, tenantId, quotas), await roomInDay(tx, tenantId, quotas, nowAt)];
  const { left, excess } = found.reduce((a, b) => (b.left < a.left ? b : a));
  return { most: left, excess, limited: { quotas, day: dayOf(nowAt) } };
}

/** Counts runs that this transaction makes because somebody asked for them. */
export async function countRequested(
  tx: Transaction,
  tenantId: Uuid,
  { limited }: RoomForRuns,
  runs: number,
): Promise<void> {
  if (limited === undefined || limited.quotas.requestedRunsPerDay === null) return;
  await addRequestedRuns(tx, tenantId, limited.day, runs);
}

async function unfitOf(
  authority: Authority,
  tx: Transaction,
  quotas: TenantQuotas,
  content: Content,
  before: Content | undefined,
): Promise<Unfit | undefined> {
  return (
    unfitPayload(quotas, content, before) ?? unfitInterval(authority, quotas, content, before, await tx.authorityNow())
  );
}

function unfitPayload(
  { payloadBytes: limit }: TenantQuotas,
  { payload }: Content,
  before?: Content,
): Unfit | undefined {
  if (limit === null) return undefined;
  const found = bytesAsSent(payload);
  if (found <= limit || JSON.stringify(payload) === JSON.stringify(before?.payload)) return undefined;
  return { quota: "payloadBytes", limit, found };
}

function unfitInterval(
  authority: Authority,
  { minIntervalMs: limit }: TenantQuotas,
  { definition }: Content,
  before: Content | undefined,
  nowAt: Instant,
): Unfit | undefined {
  if (limit === null || definition === undefined) return undefined;
  const timing = ({ rule, startAt, endAt }: Definition) => JSON.stringify([rule, startAt, endAt]);
  if (before?.definition !== undefined && timing(before.definition) === timing(definition)) return undefined;
  const compiled = compileRule(definition.rule, authority.zones);
  if (!compiled.ok) return undefined;
  const { startAt, endAt } = boundsOf(definition);
  const found = leastGap(compiled.rule, Math.max(nowAt, startAt), endAt, limit);
  return found === null || found >= limit ? undefined : { quota: "minIntervalMs", limit, found };
}

type Left = { left: number; excess: Excess | undefined };
const PLENTY: Left = { left: Number.POSITIVE_INFINITY, excess: undefined };

async function roomInQueue(tx: Transaction, tenantId: Uuid, { queuedRuns: limit }: TenantQuotas): Promise<Left> {
  if (limit === null) return PLENTY;
  const used = await countQueuedRuns(tx, tenantId, limit);
  return { left: limit - used, excess: { quota: "queuedRuns", limit, used, retryAfterMs: RETRY_QUEUED_MS } };
}

async function roomInDay(
  tx: Transaction,
  tenantId: Uuid,
  { requestedRunsPerDay: limit }: TenantQuotas,
  nowAt: Instant,
): Promise<Left> {
  if (limit === null) return PLENTY;
  const used = await readRequestedRuns(tx, tenantId, dayOf(nowAt));
  const retryAfterMs = untilNextDay(nowAt);
  return { left: limit - used, excess: { quota: "requestedRunsPerDay", limit, used, retryAfterMs } };
}
