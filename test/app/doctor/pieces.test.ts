import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { overRuns, overSchedules, type RunPiece } from "../../../src/app/doctor/invariants/pieces.ts";
import { mintId, type Uuid } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { instantText } from "../../../src/store/values.ts";
import { createWorld, type World } from "../../support/world.ts";
import { callDoctor, type Doctor } from "./examined.ts";

const RUNS = 1_000;
const PIECE = 64;

const COUNT = sql(
  "test_piece_runs",
  `select array_agg(id order by id) as ids, pg_current_xact_id_if_assigned() as written,
          (select virtualtransaction from pg_locks where pid = pg_backend_pid() and locktype = 'virtualxid') as transaction
     from run where scheduled_at >= $1 and scheduled_at <= $2 and id >= $3 and id < $4`,
);

/** A database with more rows than one look may take: they are counted, never timed. */
describe("a large table", () => {
  let world: World;
  let doctor: Doctor;
  let schedules: { long: Uuid; short: Uuid[] };
  const all: Uuid[] = [];

  beforeAll(async () => {
    world = await createWorld();
    doctor = await callDoctor(world);
    schedules = { long: await world.newSchedule(), short: [] };
    for (let n = 0; n < 30; n++) schedules.short.push(await world.newSchedule());
    // Many of one instant, as a burst makes them, and others over some hours.
    const start = Date.now() - 86_400_000;
    const rows = Array.from({ length: RUNS }, (_, n) => {
      const at = n < RUNS / 2 ? start : start + n * 60_000;
      const schedule = n % 2 === 0 ? schedules.long : schedules.short[n % schedules.short.length]!;
      return { id: mintId(at, n % 1024), at, schedule };
    });
    all.push(...rows.map((row) => row.id).toSorted());
    await world.admin.query(
      `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision, trigger,
                        state, cancel_accepted_at, finished_at)
       select id, instant_of(id), schedule_id, $3, 'short', now(), now(), now(), 1, 'manual', 'canceled', now(), now()
         from unnest($1::uuid[], $2::uuid[]) as r (id, schedule_id)`,
      [rows.map((row) => row.id), rows.map((row) => row.schedule), world.tenantId],
    );
  });
  afterAll(async () => {
    await doctor.close();
    await world.close();
  });

  const idsIn = async ({ fromAt, toAt, fromId, toId }: RunPiece) => {
    const values = [instantText(fromAt), instantText(toAt), fromId, toId];
    const [row] = await doctor.patient.careful.query<{ ids: Uuid[] | null; transaction: string }>(COUNT, values);
    return { ids: row!.ids ?? [], transaction: row!.transaction };
  };

  it("is looked at in pieces of so many rows, each run once, each piece in a transaction of its own", async () => {
    const pieces: { ids: Uuid[]; transaction: string }[] = [];
    await overRuns(
      doctor.patient.careful,
      async (piece) => {
        pieces.push(await idsIn(piece));
        return [];
      },
      PIECE,
    );
    expect(pieces.flatMap((piece) => piece.ids)).toEqual(all);
    expect(Math.max(...pieces.map((piece) => piece.ids.length))).toBe(PIECE);
    expect(new Set(pieces.map((piece) => piece.transaction)).size).toBe(pieces.length);
  });

  it("ends with the first piece in which something is wrong", async () => {
    let looks = 0;
    const found = await overRuns(doctor.patient.careful, async () => (++looks === 3 ? ["wrong"] : []), PIECE);
    expect({ looks, found }).toEqual({ looks: 3, found: ["wrong"] });
  });

  it("schedules are looked at together as far as they have few rows, and a long one in stretches", async () => {
    const seen = new Map<Uuid, number>();
    const stretches: { fromAt: number; toAt: number }[] = [];
    await overSchedules(
      doctor.patient.careful,
      async ({ ids, stretch }) => {
        if (stretch === undefined) for (const id of ids) seen.set(id, (seen.get(id) ?? 0) + 1);
        else {
          expect(ids).toEqual([schedules.long]);
          stretches.push(stretch);
        }
        const { rows } = await world.admin.query(
          `select count(*)::int as rows from run where schedule_id = any($1)
            and scheduled_at >= to_timestamp($2::float8 / 1000) and scheduled_at < to_timestamp($3::float8 / 1000)`,
          [ids, stretch?.fromAt ?? 0, stretch?.toAt ?? 32_503_680_000_000],
        );
        // Runs of one instant are never parted: here a quarter of all.
        const isOneInstant = stretch !== undefined && stretch.toAt - stretch.fromAt === 1;
        expect(rows[0].rows).toBeLessThanOrEqual(isOneInstant ? RUNS / 4 : PIECE);
        return [];
      },
      PIECE,
    );
    expect([...seen.keys()].toSorted()).toEqual(schedules.short.toSorted());
    expect([...seen.values()].every((times) => times === 1)).toBe(true);
    expect(stretches.length).toBeGreaterThan(3);
    for (const [i, { fromAt }] of stretches.slice(1).entries()) expect(fromAt).toBe(stretches[i]!.toAt);
  });

  it("a piece that takes too long is asked again in smaller ones, and one row too long is no clean bill", async () => {
    const sizes: number[] = [];
    await overRuns(
      doctor.patient.careful,
      async (piece) => {
        const { ids } = await idsIn(piece);
        sizes.push(ids.length);
        if (ids.length > 200) throw Object.assign(new Error("too long"), { code: "57014" });
        return [];
      },
      400,
    );
    expect(sizes[0]).toBe(400);
    expect(Math.max(...sizes.slice(1))).toBe(100);
    const tooLong = overRuns(doctor.patient.careful, async () => {
      throw Object.assign(new Error("too long"), { code: "57014" });
    });
    await expect(tooLong).rejects.toThrow("too long");
  });

  it("the starts of a schedule whose history is long are compared over the seams of its stretches", async () => {
    const runs = 5_200;
    const scheduleId = await world.newSchedule();
    await world.admin.query(
      `with made as (
         insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision, trigger,
                          state, cancel_accepted_at, finished_at)
         select id, instant_of(id), $1, $2, 'short', now(), now(), now(), 1, 'manual', 'canceled', now(), now()
           from (select (lpad(to_hex($3::bigint + n), 12, '0') || '80008' || lpad(to_hex(n), 15, '0'))::uuid as id
                   from generate_series(1, $4::int) n) ids
         returning id, scheduled_at)
       insert into attempt (run_id, scheduled_at, n, claim_id, fence, worker, started_at, ended_at, outcome)
       select id, scheduled_at, 1, id, row_number() over (order by id), 'w', scheduled_at, scheduled_at, 'canceled' from made`,
      [scheduleId, world.tenantId, Date.now() - 3_600_000, runs],
    );
    const examine = async () => (await doctor.look("invariant-4-fences-of-schedule"))[0]!.status;
    expect(await examine()).toBe("ok");
    // The first stretch ends with the 5001st run, and the second one begins with it.
    for (const nth of [5_000, 5_001]) {
      const swap = `update attempt a set fence = 2 * $2::bigint + 1 - a.fence from run r
        where r.id = a.run_id and r.schedule_id = $1 and a.fence in ($2::bigint, $2::bigint + 1)`;
      await world.admin.query(swap, [scheduleId, nth]);
      expect(await examine()).toBe("finding");
      await world.admin.query(swap, [scheduleId, nth]);
    }
    expect(await examine()).toBe("ok");
    await world.admin.query("delete from run where schedule_id = $1", [scheduleId]);
  });

  it("no question is let go on for more than five seconds, or write anything", async () => {
    const setting = sql(
      "test_careful_settings",
      "select current_setting('statement_timeout') as patience, current_setting('transaction_read_only') as only_reads",
    );
    expect(await doctor.patient.careful.query(setting)).toEqual([{ patience: "5s", only_reads: "on" }]);
  });
});
