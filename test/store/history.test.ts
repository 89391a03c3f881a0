import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Uuid } from "../../src/kernel/ids.ts";
import { listRuns, type Place, type RunPage } from "../../src/store/reads/history.ts";
import { readWatermark } from "../../src/store/reads/status.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world?.close());

/** A run straight into history: what is read here is rows, whoever wrote them. */
type Row = {
  id: Uuid;
  at: number;
  schedule: Uuid | null;
  class: "short" | "long";
  trigger: "schedule" | "manual";
  state: "open" | "succeeded" | "skipped";
  /** µs after the bound of the walk; what has ended by then ended with its birth. */
  bornAfterUs: number;
};

const BASE = Date.UTC(2026, 10, 30, 12);
const SCHEDULES = [1, 2, 3].map((n) => `01a22a69-0000-8000-8000-00000000000${n}`);
const PLAIN = { at: BASE, schedule: null, class: "short", trigger: "manual", state: "succeeded", tail: 0 } as const;
const BOUND = { text: "2026-11-30T00:00:00.000617Z", at: Date.UTC(2026, 10, 30) + 0.617 };
let minted = 0;

/** Few instants, so that many rows share theirs. */
const row = fc.record({
  at: fc.integer({ min: 0, max: 4 }).map((n) => BASE + n),
  schedule: fc.option(fc.constantFrom(...SCHEDULES)),
  class: fc.constantFrom("short" as const, "long" as const),
  trigger: fc.constantFrom("schedule" as const, "manual" as const),
  state: fc.constantFrom("open" as const, "succeeded" as const, "skipped" as const),
  tail: fc.integer({ min: 0, max: 0xffff }),
});
type Seed = ReturnType<(typeof row)["generate"]>["value"];

/** Its id has no order but its instant's: chance comes before the number that tells it from others. */
function made({ tail, ...seed }: Seed, bornAfterUs: number): Row {
  const hex = seed.at.toString(16).padStart(12, "0");
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-8000-8000-${tail.toString(16).padStart(4, "0")}${(++minted).toString(16).padStart(8, "0")}`;
  return { ...seed, id, bornAfterUs };
}

async function insert(tenantId: Uuid, rows: readonly Row[], bound: string): Promise<void> {
  if (rows.length === 0) return;
  await world.admin.query(
    `with born as (
       insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision, trigger,
                        state, finished_at, accepted_fence, skip_reason)
       select r.id, instant_of(r.id), r.schedule, $1, r.class, instant_of(r.id), born, born, 1, r.trigger, r.state,
              case when r.state <> 'open' then born end, case when r.state = 'succeeded' then 1 end,
              case when r.state = 'skipped' then 'misfire' end
         from (select *, $2::timestamptz + after_us * interval '1 us' as born
                 from unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::int[])
                   as r (id, schedule, class, trigger, state, after_us)) r
       returning *)
     insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
                           admitted_at, budget_from)
     select id, scheduled_at, schedule_id, tenant_id, class, 1, 1, 'queued', id, due_at, due_at, admitted_at, admitted_at
       from born where state = 'open'`,
    [
      tenantId,
      bound,
      rows.map((one) => one.id),
      rows.map((one) => one.schedule),
      rows.map((one) => one.class),
      rows.map((one) => one.trigger),
      rows.map((one) => one.state),
      rows.map((one) => one.bornAfterUs),
    ],
  );
}

/** The whole walk as the API does it: the bound and the place go through a cursor of whole microseconds. */
async function* pages(tenantId: Uuid, page: Omit<RunPage, "after">, walkRows: number) {
  let after: Place | undefined;
  const boundAt = Number(JSON.parse(JSON.stringify(Math.round(page.boundAt * 1000)))) / 1000;
  for (;;) {
    const found = await listRuns(world.db, tenantId, { ...page, boundAt, ...(after && { after }) }, walkRows);
    yield found.items;
    after = found.next;
    if (after === undefined) return;
  }
}

function expected(rows: readonly Row[], page: Partial<RunPage>): Uuid[] {
  const { scheduleId, state, trigger, from, to } = page;
  const found = rows
    .filter((one) => one.bornAfterUs <= 0)
    .filter((one) => scheduleId === undefined || one.schedule === scheduleId)
    .filter((one) => page.class === undefined || one.class === page.class)
    .filter((one) => trigger === undefined || one.trigger === trigger)
    .filter((one) => state === undefined || one.state === state || (state === "queued" && one.state === "open"))
    .filter((one) => (from === undefined || one.at >= from) && (to === undefined || one.at < to))
    .map((one) => one.id)
    .toSorted();
  return page.order === "oldest" ? found : found.reverse();
}

/** Mostly not there: with every filter at once, few rows are left to go wrong. */
const rarely = <T>(filter: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: filter });
const query = fc.record({
  scheduleId: rarely(fc.constantFrom(...SCHEDULES)),
  class: rarely(fc.constantFrom("short" as const, "long" as const)),
  trigger: rarely(fc.constantFrom("schedule" as const, "manual" as const)),
  state: rarely(fc.constantFrom("succeeded" as const, "skipped" as const, "queued" as const)),
  from: rarely(fc.integer({ min: 0, max: 3 }).map((n) => BASE + n)),
  to: rarely(fc.integer({ min: 2, max: 5 }).map((n) => BASE + n)),
  order: fc.constantFrom("newest" as const, "oldest" as const),
  limit: fc.integer({ min: 1, max: 7 }),
});

/** What happens between two pages. */
const event = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("born" as const), rows: fc.array(row, { maxLength: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("end" as const), nth: fc.nat(100) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("edit" as const), nth: fc.nat(100) }) },
);

describe("pages of history", () => {
  it("show each row that was there at the bound once, in order, whatever is born, ends or is edited meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(row, fc.integer({ min: -2, max: 2 })), { minLength: 4, maxLength: 40 }),
        query,
        fc.integer({ min: 8, max: 30 }),
        fc.array(event, { maxLength: 12 }),
        async (seeds, page, walkRows, events) => {
          const tenantId = crypto.randomUUID();
          // A bound inside a millisecond: rows of the same ms lie on both sides of it.
          const [{ bound, at }] = (
            await world.admin.query(
              "select n::text as bound, (extract(epoch from n) * 1000)::float8 as at from (select date_trunc('ms', clock_timestamp()) - interval '1 day' + interval '617 us') t (n)",
            )
          ).rows;
          const rows = seeds.map(([seed, bornAfterUs]) => made(seed, bornAfterUs));
          await insert(tenantId, rows, bound);
          const wanted = expected(rows, page as Partial<RunPage>);
          const seen: Uuid[] = [];
          const left = [...events];
          // Live states show what is so now: there nothing may end, the rest stands.
          const live = page.state === "queued";
          for await (const items of pages(tenantId, { ...page, boundAt: at } as never, walkRows)) {
            expect(items.length).toBeLessThanOrEqual(page.limit);
            seen.push(...items.map((one) => one.id));
            const next = left.shift();
            if (next?.kind === "born")
              await insert(
                tenantId,
                next.rows.map((seed) => made(seed, 1)),
                bound,
              );
            else if (next !== undefined && !live) await change(next, rows);
          }
          expect(seen).toEqual(wanted);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("of one instant go on by id, whichever schedules the runs are of", async () => {
    const tenantId = crypto.randomUUID();
    const rows = Array.from({ length: 25 }, (_, n) =>
      made({ ...PLAIN, schedule: SCHEDULES[n % 3]!, tail: (n * 7919) % 0xffff }, 0),
    );
    await insert(tenantId, rows, BOUND.text);
    for (const order of ["newest", "oldest"] as const) {
      const found: Uuid[] = [];
      for await (const items of pages(tenantId, { order, boundAt: BOUND.at, limit: 7 }, 100))
        found.push(...items.map((one) => one.id));
      expect(found).toEqual(expected(rows, { order }));
    }
  });

  it("of an ended state hold what had ended by the bound, and no run that ends while somebody pages", async () => {
    const tenantId = crypto.randomUUID();
    const rows = Array.from({ length: 8 }, (_, n) =>
      made({ ...PLAIN, at: BASE - n, state: n % 2 === 0 ? "succeeded" : "open" }, 0),
    );
    await insert(tenantId, rows, BOUND.text);
    const found: Uuid[] = [];
    for await (const items of pages(
      tenantId,
      { state: "succeeded", order: "newest", boundAt: BOUND.at, limit: 1 },
      100,
    )) {
      found.push(...items.map((one) => one.id));
      for (const nth of [3, 5, 7]) await change({ kind: "end", nth }, rows);
    }
    expect(found).toEqual([0, 2, 4, 6].map((n) => rows[n]!.id));
  });

  it("of a filter that matches next to nothing are short or empty, look at so many rows, and lead on to the end", async () => {
    const tenantId = crypto.randomUUID();
    const rows = Array.from({ length: 60 }, (_, n) =>
      made({ ...PLAIN, at: BASE + n, class: n === 5 ? "long" : "short" }, 0),
    );
    await insert(tenantId, rows, BOUND.text);
    for (const order of ["newest", "oldest"] as const) {
      const sizes: number[] = [];
      const found: Uuid[] = [];
      for await (const items of pages(tenantId, { class: "long", order, boundAt: BOUND.at, limit: 3 }, 20)) {
        sizes.push(items.length);
        found.push(...items.map((one) => one.id));
      }
      expect(found).toEqual([rows[5]!.id]);
      // Sixty rows, twenty a page, and one more look to know that there is no more.
      expect(sizes).toEqual(order === "newest" ? [0, 0, 1, 0] : [1, 0, 0, 0]);
    }
  });

  it("are bound to what nobody can add to any more: an open verb holds the bound back, however long it takes", async () => {
    const scheduleId = await world.newSchedule();
    await world.makeDue(scheduleId, 1000);
    // Whoever writes in another database of the server writes no history of this one.
    const elsewhere = new pg.Client(Object.assign(new URL(world.url), { pathname: "/postgres" }).href);
    await elsewhere.connect();
    await elsewhere.query("begin; select pg_current_xact_id()");
    const slow = world.faults.hold("materialize:written");
    const birth = world.materialize([scheduleId]);
    await slow.arrived;
    // This one knows its time and has written nothing yet.
    const gate = Promise.withResolvers<void>();
    let knownAt = 0;
    const thinking = world.db.transact({ deadlineMs: 30_000, lockTimeoutMs: 1000 }, async (tx) => {
      knownAt = await tx.authorityNow();
      await gate.promise;
    });
    const startedAt = (await world.admin.query("select (extract(epoch from clock_timestamp()) * 1000)::float8 as at"))
      .rows[0].at;
    await world.passes(startedAt + 5_050);
    const boundAt = await readWatermark(world.db);
    const list = () => listRuns(world.db, world.tenantId, { order: "newest", boundAt, limit: 10 });
    expect(await list()).toEqual({ items: [] });
    slow.release();
    await birth;
    // What has come meanwhile is younger than the bound, so the walk does not meet it.
    expect(await list()).toEqual({ items: [] });
    const bornAt = (
      await world.admin.query(
        "select (extract(epoch from materialized_at) * 1000)::float8 as at from run where schedule_id = $1",
        [scheduleId],
      )
    ).rows[0].at;
    expect(bornAt).toBeGreaterThan(boundAt);
    // The other one is older than any bound until it ends.
    expect(await readWatermark(world.db)).toBeLessThan(knownAt);
    gate.resolve();
    await thinking;
    const nextAt = await readWatermark(world.db);
    expect(nextAt).toBeGreaterThan(knownAt);
    // A clock may be set back by some seconds.
    const { rows } = await world.admin.query("select extract(epoch from clock_timestamp())::float8 * 1000 as at");
    expect(nextAt).toBeLessThanOrEqual(rows[0].at - 5_000);
    await elsewhere.end();
    expect(
      (await listRuns(world.db, world.tenantId, { order: "newest", boundAt: nextAt, limit: 10 })).items,
    ).toHaveLength(1);
  });

  it("that take too long are given up by the server, say how to ask for less, and cost no connection", async () => {
    const stranger = await world.stranger();
    await stranger.query("lock table run in access exclusive mode");
    const page = { state: "failed", order: "newest", boundAt: Date.now(), limit: 10 } as const;
    await expect(listRuns(world.db, world.tenantId, page)).rejects.toMatchObject({
      code: "busy",
      retryable: true,
      message: expect.stringContaining("from and to"),
    });
    const working =
      "select count(*)::int as n from pg_stat_activity where query like '%from run%' and state = 'active'";
    expect(
      (await stranger.query(`${working} and pid <> pg_backend_pid() and datname = current_database()`))[0],
    ).toEqual({
      n: 0,
    });
    await stranger.rollback();
    expect(await listRuns(world.db, world.tenantId, page)).toEqual({ items: [] });
  });
});

/** An open run ends now, which is after the bound; a schedule is edited: both leave what was there where it was. */
async function change(next: { kind: "end" | "edit"; nth: number }, rows: readonly Row[]): Promise<void> {
  const { id } = rows[next.nth % rows.length]!;
  if (next.kind === "edit") await world.admin.query("update run set revision = revision + 1 where id = $1", [id]);
  else {
    await world.admin.query(
      `with gone as (delete from live_run where id = $1 returning id)
       update run set state = 'succeeded', finished_at = clock_timestamp(), accepted_fence = 1
        where id = (select id from gone) and scheduled_at = instant_of($1)`,
      [id],
    );
  }
}
