import { createBackfill } from "../../../src/authority/operations/backfill/create.ts";
import { OPERATION_KINDS } from "../../../src/authority/operations/kinds.ts";
import { type Stepped, stepOperation } from "../../../src/authority/operations/step-operation.ts";
import type { BackfillPolicy } from "../../../src/domain/backfill.ts";
import { deriveRunId, type Uuid } from "../../../src/kernel/ids.ts";
import { findOperation, type OperationView } from "../../../src/store/reads/operations.ts";
import type { World } from "../../support/world.ts";
import { away } from "../scenes.ts";

type Change = Parameters<World["newSchedule"]>[0];

/** Gives the schedule one more instant, `ms` after the full minute that it settled last, and materialises it. */
export async function bearLater(world: World, scheduleId: Uuid, ms: number): Promise<Uuid> {
  const { rows } = await world.admin.query(
    `update schedule_cursor set next_run_at = date_trunc('minute', last_nominal_at) + $2 * interval '1 ms',
            next_due_at = date_trunc('minute', last_nominal_at) + $2 * interval '1 ms'
      where schedule_id = $1 returning next_run_at`,
    [scheduleId, ms],
  );
  await world.materialize([scheduleId]);
  return runIdAt(scheduleId, (rows[0].next_run_at as Date).getTime());
}

/**
 * A minutely schedule that has missed the last `minutes` whole minutes and the present one, and skipped them as its
 * policy says (no run): up to three as rows, more as one range. Answers the first of them.
 */
export async function missed(world: World, minutes: number, change: Change = {}) {
  const misfire = { policy: "skip", graceMs: 0, maxCatchUp: 1 } as const;
  const found = await away(world, minutes, { misfire, ...change });
  await world.materialize([found.scheduleId]);
  return found;
}

export function runIdAt(scheduleId: Uuid, at: number): Uuid {
  return deriveRunId(scheduleId, "schedule", at);
}

/** Begins a backfill of [fromAt, toAt); answers the operation's id. */
export async function begin(
  world: World,
  scheduleId: Uuid,
  fromAt: number,
  toAt: number,
  more: { policy?: BackfillPolicy; pacePerSecond?: number; tenantId?: Uuid } = {},
): Promise<Uuid> {
  const made = await createBackfill(world.authority, {
    tenantId: world.tenantId,
    scheduleId,
    fromAt,
    toAt,
    policy: "missing",
    pacePerSecond: 1_000,
    actor: "test",
    reason: null,
    total: null,
    ...more,
  });
  if (made.kind !== "created") throw new Error(`not created: ${JSON.stringify(made)}`);
  return made.operation.id;
}

export function step(world: World, id: Uuid, authority = world.authority): Promise<Stepped> {
  return stepOperation(authority, OPERATION_KINDS, id);
}

/** Its next step may be taken now, whatever its pace. */
export async function hurry(world: World, id: Uuid): Promise<void> {
  await world.admin.query("update operation set next_step_at = clock_timestamp() where id = $1", [id]);
}

/** Takes steps until it has ended, whatever its pace; answers how. */
export async function finish(world: World, id: Uuid, authority = world.authority): Promise<Stepped> {
  for (let steps = 0; steps < 500; steps++) {
    await hurry(world, id);
    const outcome = await step(world, id, authority);
    if (outcome === "ended" || outcome === "failed") return outcome;
  }
  throw new Error("it does not end");
}

export async function operationOf(world: World, id: Uuid): Promise<OperationView> {
  return (await findOperation(world.db, world.tenantId, id))!;
}

/** Ranges, and how much of each was opened again. */
export async function openedRangesOf(world: World, scheduleId: Uuid) {
  const { rows } = await world.admin.query(
    "select from_at, to_at, instants, backfilled, reason from skip_range where schedule_id = $1 order by from_at",
    [scheduleId],
  );
  return rows as { from_at: Date; to_at: Date; instants: bigint | null; backfilled: bigint; reason: string }[];
}
