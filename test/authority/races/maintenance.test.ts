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
import { PunctualError } from "../../../src/kernel/errors.ts";
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
    const rule = { kind: "interval", everyMs: 1000, anchorAt: 0 } as const;
    const scheduleId = await world.newSchedule({ ...allow(40), rule });
    await world.makeDue(scheduleId, 80_000);
    await world.materialize([scheduleId]);
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
      for (let n = 0; n < ROUNDS; n++) {
        try {
          await act(authority, n);
        } catch (error) {
          // A schedule that never holds still is an honest answer.
          if (!(error instanceof PunctualError && error.code === "busy")) throw error;
        }
      }
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
      for (const id of ids.slice(0, 10)) await world.admin.query(lapse, [id]);
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
      const change = { definition: definitionOf({ ...definition, ...allow(30 + 10 * (n % 3)) }) };
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
    // Nothing is stuck: whatever is left starts and ends.
    for (let wave = 0; wave < 300 && (await world.live()).length > 0; wave++) {
      await world.makeAvailable();
      await world.claimAll();
      await world.admin.query(
        "update live_run set lease_until = clock_timestamp() + interval '1 minute' where state = 'running'",
      );
      const left = (await look("state = 'running'")).map(({ id, fence }) => ({ runId: id, fence }));
      await completeRuns(
        world.authority,
        left.map(({ runId, fence }) => ({ runId, fence, output: null })),
      );
    }
    expect(await world.live()).toEqual([]);
    await world.check();
  });
});
