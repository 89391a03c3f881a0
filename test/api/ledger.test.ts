import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ledgerSchema } from "../../src/api/present/ledger.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { deriveRunId, readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

const MINUTE = 60_000;
type Ledger = (typeof ledgerSchema)["_output"];

let server: TestServer;
let owner: string;
let stranger: string;
beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
  stranger = await server.key(await server.tenant("strangers"), "viewer");
});
afterAll(() => server?.close());

const send = (method: string, path: string, body?: unknown, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }) });
const change = (text: string, values: unknown[] = []) =>
  server.db.query(sql(`test_${text.length}_${text.slice(0, 20)}`, text), values);

/** Minutely, as if created three hours ago, and with no scanner since `missed` whole minutes ago. Answers the first of them. */
async function away(missed: number, misfire: object = { policy: "latest", graceMs: 0 }) {
  const rule = { kind: "cron", expression: "* * * * *", zone: "America/New_York" };
  const made = await send("POST", "/v1/schedules", {
    name: "m",
    rule,
    job: REPORT,
    overlap: { policy: "allow" },
    misfire,
  });
  const ref = String(made.body.scheduleId);
  const id = readId("sch", ref)!;
  while (Date.now() % MINUTE > MINUTE - 3_000) await new Promise(setImmediate);
  const firstAt = Math.floor(Date.now() / MINUTE) * MINUTE - missed * MINUTE;
  await change("update chain set started_at = to_timestamp($2 / 1000.0) where schedule_id = $1", [id, firstAt - 1]);
  const text =
    "update schedule_cursor set next_run_at = to_timestamp($2 / 1000.0), next_due_at = to_timestamp($2 / 1000.0) where schedule_id = $1";
  await change(text, [id, firstAt]);
  return { ref, id, firstAt };
}

/** Everything looks older than the list's bound, so that no test has to wait for it. */
async function settle(id: string) {
  await materialize(server.authority, [id], leaveToRelay);
  await change("update run set materialized_at = materialized_at - interval '10 s' where schedule_id = $1", [id]);
  await change("update skip_range set created_at = created_at - interval '10 s' where schedule_id = $1", [id]);
}

async function ledger(ref: string, fromAt: number, toAt: number, more = "", key = owner): Promise<Ledger> {
  const query = `from=${new Date(fromAt).toISOString()}&to=${new Date(toAt).toISOString()}${more}`;
  const answer = await send("GET", `/v1/schedules/${ref}/ledger?${query}`, undefined, key);
  expect(answer.status, answer.text).toBe(200);
  return ledgerSchema.parse(answer.body);
}

const at = (ms: number) => new Date(ms).toISOString().replace(".000Z", "Z");

describe("the ledger of a schedule", () => {
  it("accounts for an outage: one range, the run that was caught up, each with its local time", async () => {
    const { ref, id, firstAt } = await away(20);
    await settle(id);
    await send("POST", `/v1/schedules/${ref}/runs`, { payload: {} });
    const page = await ledger(ref, firstAt, firstAt + 60 * MINUTE);
    expect(page).toMatchObject({
      complete: true,
      holes: [],
      counts: {
        ran: { value: 0, capped: false },
        pending: { value: 1, capped: false },
        skipped: { value: 20, capped: false },
      },
      recomputed: "agrees",
      decidedTo: at(firstAt + 21 * MINUTE),
      items: [
        { kind: "range", at: at(firstAt), to: { at: at(firstAt + 19 * MINUTE) }, instants: 20, reason: "misfire" },
        { kind: "pending", at: at(firstAt + 20 * MINUTE), state: "queued", outcome: null, trigger: "catch-up" },
      ],
      next: null,
    });
    expect(page.items[0]!.local).toMatch(/T\d\d:\d\d:00-0[45]:00\[America\/New_York\]$/);
    expect(page.notes).toEqual([
      expect.stringMatching(
        /^The schedule did not exist before .+: of earlier instants only those are here that were backfilled/,
      ),
      `Instants from ${at(firstAt + 21 * MINUTE)} on are not decided yet.`,
    ]);
  });

  it("is one walk over pages of any size, in nominal order, and counts the whole period on each", async () => {
    const { ref, id, firstAt } = await away(9, { policy: "all", graceMs: 0, maxCatchUp: 5 });
    await settle(id);
    const whole = await ledger(ref, firstAt, firstAt + 60 * MINUTE);
    expect(whole.items.map((one) => one.kind)).toEqual([...Array(5).fill("pending"), "range"]);
    const walked = [];
    let page = await ledger(ref, firstAt, firstAt + 60 * MINUTE, "&limit=1");
    for (
      ;
      page.next !== null;
      page = await ledger(ref, firstAt, firstAt + 60 * MINUTE, `&limit=1&after=${page.next}`)
    ) {
      expect(page.counts).toEqual(whole.counts);
      walked.push(...page.items);
    }
    expect([...walked, ...page.items]).toEqual(whole.items);
    expect(await ledger(ref, firstAt + 2 * MINUTE, firstAt + 4 * MINUTE)).toMatchObject({
      complete: true,
      items: [{ at: at(firstAt + 2 * MINUTE) }, { at: at(firstAt + 3 * MINUTE) }],
    });
    const amid = await ledger(ref, firstAt + 7 * MINUTE, firstAt + 8 * MINUTE);
    expect(amid).toMatchObject({
      complete: true,
      counts: { skipped: { value: 0, capped: true } },
      items: [{ kind: "range", at: at(firstAt + 5 * MINUTE) }],
    });
  });

  it("names the hole where a record is missing, wherever in the chain it was", async () => {
    const { ref, id, firstAt } = await away(3, { policy: "all", graceMs: 0 });
    await settle(id);
    const remove = async (n: number) => {
      const scheduledAt = new Date(firstAt + n * MINUTE).toISOString();
      await change("delete from run where schedule_id = $1 and scheduled_at = $2", [id, scheduledAt]);
    };
    await remove(1);
    const torn = await ledger(ref, firstAt - MINUTE, firstAt + 60 * MINUTE);
    expect(torn).toMatchObject({
      complete: false,
      recomputed: "agrees",
      holes: [
        {
          kind: "missing-link",
          after: at(firstAt),
          before: at(firstAt + 2 * MINUTE),
          expected: expect.stringContaining(new Date(firstAt + MINUTE).toISOString()),
        },
      ],
    });
    expect(await ledger(ref, firstAt - MINUTE, firstAt)).toMatchObject({ complete: true, items: [] });
    await remove(3);
    expect((await ledger(ref, firstAt + 2 * MINUTE, firstAt + 60 * MINUTE)).holes).toMatchObject([
      { kind: "lost-end", after: at(firstAt + 2 * MINUTE), before: at(firstAt + 4 * MINUTE) },
    ]);
  });

  it("takes no start of a chain that nobody explains", async () => {
    const { ref, id, firstAt } = await away(1, { policy: "all", graceMs: 0 });
    await settle(id);
    await change("update run set prev_scheduled_at = null where schedule_id = $1 and trigger = 'catch-up'", [id]);
    expect((await ledger(ref, firstAt, firstAt + 60 * MINUTE)).holes).toMatchObject([
      { kind: "unexplained-start", after: at(firstAt), before: at(firstAt + MINUTE) },
    ]);
  });

  it("counts a backfilled instant once: its run wins over the range that it lies in", async () => {
    const { ref, id, firstAt } = await away(10);
    await settle(id);
    const backfilledAt = firstAt + 4 * MINUTE;
    await change(
      `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, revision, trigger,
                        state, finished_at, accepted_fence, attempts)
       select $2, to_timestamp($3 / 1000.0), schedule_id, tenant_id, 'short', to_timestamp($3 / 1000.0), now(),
              now() - interval '10 s', 1, 'backfill', 'succeeded', now(), 1, 1
         from schedule_cursor where schedule_id = $1`,
      [id, deriveRunId(id, "schedule", backfilledAt), backfilledAt],
    );
    await change("update skip_range set backfilled = 1 where schedule_id = $1", [id]);
    const page = await ledger(ref, firstAt, firstAt + 60 * MINUTE);
    expect(page).toMatchObject({
      complete: true,
      counts: { ran: { value: 1 }, skipped: { value: 9 }, pending: { value: 1 } },
      items: [
        { kind: "range", instants: 10, backfilled: 1 },
        { kind: "ran", at: at(backfilledAt), state: "succeeded", outcome: { attempts: 1 } },
        { kind: "pending" },
      ],
    });
  });

  it("says that an edit started another chain for a reason, and what a pause still holds back", async () => {
    const { ref, id, firstAt } = await away(0);
    await settle(id);
    const rule = { kind: "interval", everyMs: 3_600_000, anchorAt: firstAt + 30 * 1000 };
    const edit = await send("PATCH", `/v1/schedules/${ref}`, { expectedRevision: 1, rule });
    expect(edit.status, edit.text).toBe(200);
    await send("POST", `/v1/schedules/${ref}/pause`, {});
    await change("update schedule_cursor set next_run_at = to_timestamp($2 / 1000.0) where schedule_id = $1", [
      id,
      firstAt + 30 * 1000,
    ]);
    const page = await ledger(ref, firstAt, firstAt + 60 * MINUTE);
    expect(page).toMatchObject({ complete: true, items: [{ at: at(firstAt), revision: 1 }] });
    expect(page.notes).toEqual([
      expect.stringMatching(/^The schedule did not exist before /),
      `The schedule is paused: instants from ${at(firstAt + 30 * 1000)} on are decided when it is resumed.`,
    ]);
  });

  it("verifies so many records at once, and says from where to ask again", async () => {
    const rule = { kind: "interval", everyMs: 20_000, anchorAt: "2026-01-01T00:00:00Z" };
    const made = await send("POST", "/v1/schedules", { name: "many", rule, job: REPORT });
    const [ref, id] = [String(made.body.scheduleId), readId("sch", String(made.body.scheduleId))!];
    const firstAt = Math.floor(Date.now() / MINUTE) * MINUTE - 5 * 86_400_000;
    await change(
      `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at, prev_scheduled_at,
                        revision, trigger, state, finished_at, cancel_accepted_at)
       select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '8000800000000000' || '0000')::uuid, at,
              schedule_id, tenant_id, 'short', at, at, at, lag(at) over (order by at), 1, 'schedule', 'canceled', at, at
         from schedule_cursor, generate_series(0, 20010) n, lateral (select to_timestamp($2 / 1000.0) + n * interval '20 s' as at) i
        where schedule_id = $1`,
      [id, firstAt],
    );
    const newest = "(select max(scheduled_at) from run where schedule_id = $1)";
    await change(`update schedule_cursor set last_nominal_at = ${newest} where schedule_id = $1`, [id]);
    const toAt = firstAt + 6 * 86_400_000;
    const page = await ledger(ref, firstAt, toAt);
    const verifiedTo = firstAt + 20_000 * 20_000;
    expect(page).toMatchObject({
      complete: true,
      verifiedTo: at(verifiedTo),
      counts: { ran: { value: 20_000, capped: true }, skipped: { value: 0, capped: true } },
    });
    expect(page.notes.join()).toContain(`ask again from ${at(verifiedTo)}`);
    const rest = await ledger(ref, verifiedTo, toAt);
    expect(rest).toMatchObject({ complete: true, verifiedTo: at(toAt), counts: { ran: { value: 11, capped: false } } });
  });

  it("is nobody else's, and refuses a period that is none", async () => {
    const { ref, firstAt } = await away(0);
    expect((await send("GET", `/v1/schedules/${ref}/ledger`, undefined, stranger)).status).toBe(404);
    const query = `from=${at(firstAt)}&to=${at(firstAt)}`;
    const refused = await send("GET", `/v1/schedules/${ref}/ledger?${query}`);
    expect([refused.status, refused.body.errors]).toMatchObject([400, [{ field: "to", found: at(firstAt) }]]);
    expect((await send("GET", `/v1/schedules/${ref}/ledger?after=abc`)).body.code).toBe("invalid-cursor");
    expect((await send("GET", `/v1/schedules/${ref}/ledger`)).body).toMatchObject({ complete: true, items: [] });
  });
});
