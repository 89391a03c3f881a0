import { afterEach, beforeEach, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { replayRun } from "../../../src/authority/dead-letters/replay.ts";
import { runAdHoc } from "../../../src/authority/runs/run-ad-hoc.ts";
import { workSchema } from "../../../src/domain/definition.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { failForGood, hintsOf, running, start } from "../scenes.ts";
import { effectsOf, email, succeeded, webhook } from "./scenes.ts";

const DAY_MS = 86_400_000;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

it("an accepted result has one intent for each declared effect, named for ever after its run", async () => {
  const { grant, effects } = await succeeded(world, [webhook(), email()]);
  const run = showId("run", grant.runId);
  expect(effects.map((one) => [one.name, one.action_id, one.state])).toEqual([
    ["hook", `hook-${run}`, "pending"],
    ["mail", `mail-${run}`, "pending"],
  ]);
  const { result_object, result_sha256 } = await world.run(grant.runId);
  for (const { object_id, request } of effects) {
    expect(object_id).toBe(result_object);
    expect(request.facts).toMatchObject({
      schedule: { name: "a schedule" },
      job: "test.noop",
      run: { id: run, attempt: 1 },
      result: { sha256: result_sha256, size: "a report".length },
    });
  }
  const { rows } = await world.admin.query(
    "select pin_until > clock_timestamp() + interval '6 days' as pinned from object where id = $1",
    [result_object],
  );
  expect(rows).toEqual([{ pinned: true }]);
});

it("a link works for a week after the last attempt that there may be, and while a receiver may know what it was told", async () => {
  const { grant, effects } = await succeeded(world, [
    email({ retry: { maxElapsedMs: 30 * DAY_MS } }),
    webhook({ name: "crm", idempotencyWindowMs: 20 * DAY_MS }),
    webhook({ name: "day" }),
  ]);
  const { result_object, finished_at } = await world.run(grant.runId);
  const days = effects.map(({ name, request }) => {
    const { linkExpires } = (request.facts as { result: { linkExpires: number } }).result;
    return [name, Math.floor((linkExpires * 1000 - (finished_at as Date).getTime()) / DAY_MS)];
  });
  expect(days).toEqual([
    ["crm", 27],
    ["day", 8],
    ["mail", 37],
  ]);
  const { rows } = await world.admin.query(
    "select extract(day from pin_until - clock_timestamp())::int as days from object where id = $1",
    [result_object],
  );
  expect(rows[0].days).toBeGreaterThanOrEqual(36);
});

it("a success without a result has its effects all the same", async () => {
  const { grant } = await running(world, { effects: [email()] });
  await world.complete(grant);
  expect(await effectsOf(world, grant.runId)).toMatchObject([
    { object_id: null, request: { facts: { result: null } } },
  ]);
});

it("an ad hoc run brings its own effects", async () => {
  const work = workSchema.parse({ job: { kind: "function", name: "test.noop" }, effects: [webhook()] });
  const made = await runAdHoc(world.authority, { tenantId: world.tenantId, actor: "test", work, payload: {} });
  if (!("runId" in made)) throw new Error(made.kind);
  const grant = await start(world, made.runId);
  await world.complete(grant);
  expect(await effectsOf(world, grant.runId)).toMatchObject([
    { name: "hook", request: { facts: { schedule: null, job: "test.noop" } } },
  ]);
});

it("a run that fails has none, and has them once when a later attempt succeeds", async () => {
  const { grant } = await running(world, { effects: [email()] });
  const failure = { transient: true, code: "busy", message: "later" };
  await failRuns(world.authority, [{ runId: grant.runId, fence: grant.fence, failure }]);
  expect(await effectsOf(world, grant.runId)).toEqual([]);
  await world.makeAvailable();
  const again = await start(world, grant.runId);
  await world.complete(again, "a report");
  expect(await effectsOf(world, grant.runId)).toHaveLength(1);
});

it("a stale worker brings about nothing: only the accepted result has effects", async () => {
  const { grant } = await running(world, { effects: [email()] });
  const staged = await world.stage(grant, "report of A");
  await world.expireLease(grant.runId);
  await expireLeases(world.authority, [grant.runId], 0);
  await world.makeAvailable();
  const other = await start(world, grant.runId, "worker-b");
  const stale = { runId: grant.runId, fence: grant.fence, output: staged };
  expect(await completeRuns(world.authority, [stale])).toMatchObject([{ kind: "stale-fence" }]);
  expect(await effectsOf(world, grant.runId)).toEqual([]);
  await world.complete(other, "report of B");
  expect(await completeRuns(world.authority, [stale])).toMatchObject([{ kind: "stale-fence" }]);
  const { result_object } = await world.run(grant.runId);
  expect(await effectsOf(world, grant.runId)).toMatchObject([{ object_id: result_object }]);
});

it("a completion said twice, also in one batch, has its effects once", async () => {
  const { grant } = await running(world, { effects: [email(), webhook()] });
  const output = await world.stage(grant, "a report");
  const completion = { runId: grant.runId, fence: grant.fence, output };
  const outcomes = await completeRuns(world.authority, [completion, completion]);
  expect(outcomes.map((one) => one.kind)).toEqual(["accepted", "already-accepted"]);
  expect(await completeRuns(world.authority, [completion])).toMatchObject([{ kind: "already-accepted" }]);
  expect(await effectsOf(world, grant.runId)).toHaveLength(2);
});

it("a completion that does not commit leaves no intent behind", async () => {
  const { grant } = await running(world, { effects: [email()] });
  world.faults.once("complete:written", () => {
    throw new Error("killed");
  });
  await expect(world.complete(grant, "a report")).rejects.toThrow("killed");
  expect(await effectsOf(world, grant.runId)).toEqual([]);
  expect(await hintsOf(world, grant.runId)).toEqual([]);
});

it("a run without effects is not looked at: its revision is not even read", async () => {
  const { grant } = await running(world);
  const asked: string[] = [];
  const authority = {
    ...world.authority,
    transact: <T>(verb: string, work: (tx: never) => Promise<T>) =>
      world.authority.transact(verb, (tx) =>
        work({
          ...tx,
          query: (statement: { name: string }, values: unknown[]) => {
            asked.push(statement.name);
            return tx.query(statement as never, values);
          },
        } as never),
      ),
  };
  await completeRuns(authority as never, [{ runId: grant.runId, fence: grant.fence, output: null }]);
  expect(asked.filter((name) => /effect|live_read$|revisions/.test(name))).toEqual([]);
});

it("a run that failed for good and is replayed has its effects when it succeeds, an ad hoc one too", async () => {
  const { grant: failed } = await running(world, { effects: [email()] });
  const work = workSchema.parse({ job: { kind: "function", name: "test.noop" }, effects: [webhook()] });
  const made = await runAdHoc(world.authority, { tenantId: world.tenantId, actor: "test", work, payload: {} });
  if (!("runId" in made)) throw new Error(made.kind);
  const adHoc = await start(world, made.runId);
  for (const grant of [failed, adHoc]) {
    await failForGood(world, grant);
    await replayRun(world.authority, { tenantId: world.tenantId, actor: "anna", runId: grant.runId, reason: "mended" });
    await world.complete(await start(world, grant.runId));
  }
  expect(await effectsOf(world, failed.runId)).toMatchObject([{ name: "mail", state: "pending" }]);
  expect(await effectsOf(world, adHoc.runId)).toMatchObject([{ name: "hook", state: "pending" }]);
});
