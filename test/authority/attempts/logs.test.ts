import { rmSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { keepLog, type LogStore, partIdFor } from "../../../src/authority/attempts/keep-log.ts";
import { cleanObjects, findExpiredResults } from "../../../src/authority/objects/clean-objects.ts";
import { findGoingObjects } from "../../../src/authority/objects/settle-deletions.ts";
import { createFilesystemStore } from "../../../src/objects/filesystem.ts";
import { createLogParts } from "../../../src/objects/log-parts.ts";
import { pruneOld } from "../../../src/store/retention/prunes.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { createWorld, type World } from "../../support/world.ts";
import { running } from "../scenes.ts";

const DAY_MS = 86_400_000;

describe("logs of attempts", () => {
  const root = makeTemporaryFolder("punctual-logs-");
  const files = createFilesystemStore({ root });
  const store = createLogParts(files, 1_000);
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
    await files.prepare();
  });
  afterEach(() => world.check());
  afterAll(async () => {
    await world.close();
    rmSync(root, { recursive: true, force: true });
  });

  const pieceOf = ({ runId, attempt, fence }: Grant, text: string) => ({
    runId,
    attempt,
    fence,
    bytes: Buffer.from(text),
  });
  const say = (grant: Grant, text: string, logs: LogStore = store) =>
    keepLog(world.authority, logs, pieceOf(grant, text));
  const partsOf = async ({ runId }: Grant) =>
    (
      await world.admin.query(
        `select l.n, l.at_byte::int as at, l.size, o.state, o.uri, o.id
           from object o left join attempt_log l on l.object_id = o.id
          where o.run_id = $1 and o.kind = 'log' order by o.created_at, o.id`,
        [runId],
      )
    ).rows;
  const stored = async () => (await files.list(undefined)).objects.map((one) => one.uri);

  it("the newest parts of a log are kept, the oldest are cleared away, and the count goes on", async () => {
    const { grant } = await running(world);
    for (const letter of "abc") expect(await say(grant, letter.repeat(400))).toEqual({ kind: "kept" });
    const parts = await partsOf(grant);
    expect(parts).toMatchObject([
      { n: null, state: "deleting" },
      { n: 2, at: 400, size: 400, state: "referenced" },
      { n: 3, at: 800, size: 400, state: "referenced" },
    ]);
    expect((await findGoingObjects(world.authority, 10)).map((one) => one.uri)).toContain(parts[0]!.uri);
  });

  it("a log is its attempt's: another fence is refused, and its bytes are removed", async () => {
    const { grant } = await running(world);
    const removed: string[] = [];
    const watched = { ...store, remove: async (uri: string) => void removed.push(uri) };
    expect(await say({ ...grant, fence: grant.fence + 1n }, "forged", watched)).toEqual({ kind: "stale-fence" });
    expect(removed).toHaveLength(1);
    expect(await partsOf(grant)).toEqual([]);
  });

  it("an attempt that lost its lease may hand in its last words under its own fence, for some minutes", async () => {
    const { grant } = await running(world);
    await world.expireLease(grant.runId);
    expect(await expireLeases(world.authority, [grant.runId], 0)).toBe(1);
    expect(await say(grant, "last words")).toEqual({ kind: "kept" });
    await world.admin.query(
      "update attempt set ended_at = ended_at - interval '11 minutes', started_at = started_at - interval '1 hour' where run_id = $1",
      [grant.runId],
    );
    expect(await say(grant, "too late")).toEqual({ kind: "stale-fence" });
  });

  it("a part whose answer got lost is said again and is there once", async () => {
    const { grant } = await running(world);
    const piece = { ...pieceOf(grant, "once"), part: partIdFor(world.authority, grant.runId) };
    expect(await keepLog(world.authority, store, piece)).toEqual({ kind: "kept" });
    expect(await keepLog(world.authority, store, piece)).toEqual({ kind: "kept" });
    expect(await partsOf(grant)).toMatchObject([{ n: 1, at: 0, size: 4 }]);
  });

  it("however many write to one log at the same time, all get their place", async () => {
    const { grant } = await running(world);
    const letters = "abcdefghijklmnopqrst".split("");
    const answers = await Promise.all(letters.map((letter) => say(grant, letter.repeat(10))));
    expect(answers).toEqual(letters.map(() => ({ kind: "kept" })));
    const parts = (await partsOf(grant)).toSorted((a, b) => a.n - b.n);
    expect(parts.map(({ n, at }) => [n, at])).toEqual(letters.map((_, i) => [i + 1, i * 10]));
  });

  it("a store that fails is an answer, and no row names what is not stored", async () => {
    const { grant } = await running(world);
    const broken: LogStore = { ...store, put: () => Promise.reject(new Error("the disk is full")) };
    expect(await say(grant, "lost", broken)).toMatchObject({ kind: "failed" });
    expect(await partsOf(grant)).toEqual([]);
    expect(await say(grant, "lost", { ...store, limitBytes: 0 })).toEqual({ kind: "off" });
  });

  it("a log goes as results go: its bytes when they were kept long enough, its rows with the run's history", async () => {
    const { grant } = await running(world);
    await say(grant, "old words");
    const [part] = await partsOf(grant);
    await world.admin.query("update object set referenced_at = clock_timestamp() - interval '8 days' where id = $1", [
      part.id,
    ]);
    expect(await findExpiredResults(world.authority, 10, 7 * DAY_MS)).toContain(part.id);
    expect(await cleanObjects(world.authority, [part.id], 7 * DAY_MS)).toEqual([part.id]);
    expect(await stored()).toContain(part.uri);
    const limits = { floorAt: Date.now() + DAY_MS, endedBefore: 0, keysBefore: 0 };
    expect((await pruneOld(world.db, limits, 1_000)).attempt_log).toBeGreaterThan(0);
    expect((await partsOf(grant))[0]).toMatchObject({ n: null });
  });
});
