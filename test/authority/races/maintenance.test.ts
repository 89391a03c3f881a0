import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { prune } from "../../../src/authority/retention/prune.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { findSchedule } from "../../../src/store/reads/schedules.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { allow } from "../scenes.ts";

const ROUNDS = 25;
const WORKERS = 20;

describe("B41 maintenance beside live work", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  it("sweepers, workers on the same runs, cancels, edits, retention and run-now on one schedule: no deadlock reaches anybody, and none happens", async () => {
    const scheduleId = await world.newSchedule({ ...allow(3), rule: { kind: "interval", everyMs: 1000, anchorAt: 0 } });
    const { tenantId } = world;
    const who = { tenantId, actor: "test", scheduleId };
    const processes = [world.another(), world.another(), world.another(), world.another()];
    const processOf = (n: number) => processes[n % processes.length]!;
    const look = async (where: string) =>
      (await world.admin.query(`select id, fence from live_run where ${where} order by id`)).rows as {
        id: string;
        fence: bigint;
      }[];
    /** Everybody is done after so many rounds, however long they take. */
    const rounds = async (act: (authority: Authority, n: number) => Promise<unknown>, authority: Authority) => {
      for (let n = 0; n < ROUNDS; n++) await act(authority, n);
    };

    const worker = async (authority: Authority) => {
      const hints = (await world.outbox()).map((row) => ({ rowId: row.id, epoch: 1 }));
      const slots = { short: 10 };
      await claimRuns(authority, { claimId: randomUUID(), worker: "w", slots, hints, repeated: false });
      const running = await look("state = 'running'");
      await completeRuns(
        authority,
        running.map(({ id, fence }) => ({ runId: id, fence, output: null })),
      );
    };
    const sweeper = async (authority: Authority) => {
      const ids = (await look("state = 'running'")).map(({ id }) => id);
      const lapse =
        "update live_run set lease_until = clock_timestamp() - interval '1 s' where id = $1 and state = 'running'";
      for (const id of ids.slice(0, 3)) await world.admin.query(lapse, [id]);
      await expireLeases(authority, ids.toReversed(), 0);
    };
    const canceler = async (authority: Authority) => {
      const open = (await look("true")).toReversed().slice(0, 5);
      await cancelRuns(
        authority,
        open.map(({ id }) => ({ tenantId, runId: id })),
      );
    };
    const editor = async (authority: Authority, n: number) => {
      const { revision, definition } = (await findSchedule(authority.db, tenantId, scheduleId))!;
      const change = { definition: definitionOf({ ...definition, ...allow(2 + (n % 3)) }) };
      await reviseSchedule(authority, { ...who, expectedRevision: revision, change });
    };
    const keeper = async (authority: Authority) => {
      const at = Date.now();
      const limits = { floorAt: 0, endedBefore: 0, keysBefore: at, auditBefore: at };
      await prune(authority, limits, undefined, 50);
    };

    await Promise.all([
      ...Array.from({ length: WORKERS }, (_, n) => rounds(worker, processOf(n))),
      rounds(sweeper, processOf(0)),
      rounds(sweeper, processOf(1)),
      rounds(canceler, processOf(2)),
      rounds(editor, processOf(3)),
      rounds(keeper, processOf(0)),
      rounds(
        (authority) => runNow(authority, { ...who, requestKey: { key: randomUUID(), bodySha256: Buffer.alloc(32) } }),
        processOf(1),
      ),
      rounds((authority) => materialize(authority, [scheduleId], leaveToRelay), processOf(2)),
    ]);

    await world.check();
    for (const { metrics } of processes) {
      const codes = (await metrics.verbFaults.get()).values.map((value) => value.labels.code);
      expect(codes).not.toContain("40P01");
    }
    const done = await world.admin.query("select count(*)::int as n from run where state in ('succeeded', 'canceled')");
    expect(done.rows[0].n).toBeGreaterThan(ROUNDS);
  });
});
