import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import { recoverAuthority } from "../../../src/authority/recovery/recover.ts";
import { operatorError } from "../../../src/kernel/errors.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createObjectCleaner } from "../../../src/loops/objects/object-cleaner.ts";
import { createStoreCleaner } from "../../../src/loops/objects/store-cleaner.ts";
import { createFilesystemStore } from "../../../src/objects/filesystem.ts";
import { createObjectKey } from "../../../src/objects/key.ts";
import type { ObjectStore, StoredObject } from "../../../src/objects/port.ts";
import { running } from "../../authority/scenes.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { createWorld, type World } from "../../support/world.ts";

const DAY_MS = 86_400_000;
const plain = { mediaType: "text/plain" };
const goOn = new AbortController().signal;

describe("what cleans objects", () => {
  let world: World;
  let root: string;
  let objects: ObjectStore;
  beforeAll(async () => {
    world = await createWorld();
  });
  beforeEach(() => {
    root = makeTemporaryFolder("punctual-cleaned-");
    objects = createFilesystemStore({ root });
  });
  afterAll(() => world.close());

  async function upload(grant: Grant, name = "report.txt") {
    const { runId, attempt, fence } = grant;
    const key = createObjectKey({ runId, attempt, fence, name });
    const uri = objects.uriOf(key);
    const granted = await grantUpload(world.authority, { runId, fence, name, uri, mediaType: "text/plain" });
    if (granted.kind !== "granted") throw new Error(granted.kind);
    const put = await objects.put(key, Buffer.from("report"), plain);
    if (put.kind !== "created") throw new Error(put.kind);
    return { key, objectId: granted.objectId, ...put.object };
  }
  const stage = (grant: Grant, object: StoredObject & { objectId: Uuid }) =>
    stageObject(world.authority, { runId: grant.runId, fence: grant.fence, ...object });
  const publish = async () => {
    const { grant } = await running(world);
    const object = await upload(grant);
    await stage(grant, object);
    const { objectId, sha256 } = object;
    const output = { objectId, sha256 };
    expect(await completeRuns(world.authority, [{ ...grant, output }])).toEqual([{ kind: "accepted" }]);
    return object;
  };
  const orphan = async () => {
    const { grant } = await running(world);
    const object = await upload(grant);
    await stage(grant, object);
    await world.expireLease(grant.runId);
    await expireLeases(world.authority, [grant.runId], 0);
    return { grant, ...object };
  };
  const stateOf = async (id: Uuid) =>
    (await world.admin.query("select state from object where id = $1", [id])).rows[0]?.state;
  const counted = async (metric: string) =>
    ((await world.authority.metrics.registry.getSingleMetric(metric)?.get())?.values ?? []).reduce(
      (sum, { value }) => sum + value,
      0,
    );

  it("from the registry: orphans and old results leave the store, results that are kept stay", async () => {
    const [kept, old, stale] = [await publish(), await publish(), await orphan()];
    await world.admin.query("update object set referenced_at = referenced_at - interval '7 days' where id = $1", [
      old.objectId,
    ]);
    const cleaner = createObjectCleaner({ authority: world.authority, objects, keptMs: 7 * DAY_MS });
    expect(await cleaner.pass(goOn)).toMatchObject({ more: false });
    expect(await Promise.all([kept, old, stale].map((one) => stateOf(one.objectId)))).toEqual([
      "referenced",
      "deleted",
      "deleted",
    ]);
    expect(await Promise.all([kept, old, stale].map((one) => objects.stat(one)))).toEqual([
      { uri: kept.uri, size: 6 },
      undefined,
      undefined,
    ]);
    expect(await cleaner.pass(goOn)).toEqual({ did: 0, more: false });
  });

  it("an upload that arrives after its object was deleted leaves no bytes behind for ever", async () => {
    const { objectId, key } = await orphan();
    const cleaner = createObjectCleaner({ authority: world.authority, objects, keptMs: DAY_MS });
    await cleaner.pass(goOn);
    const late = await objects.put(key, Buffer.from("late"), plain);
    expect(late.kind).toBe("created");
    await cleaner.pass(goOn);
    expect(await objects.stat({ uri: objects.uriOf(key), version: null })).toBeDefined(); // not yet
    await world.admin.query(
      `update object set granted_until = clock_timestamp() - interval '1 hour', clean_at = clock_timestamp(),
                         deleted_at = clock_timestamp() - interval '1 min' where id = $1`,
      [objectId],
    );
    await cleaner.pass(goOn);
    expect(await objects.stat({ uri: objects.uriOf(key), version: null })).toBeUndefined();
  });

  it("a deletion that the store refuses is put off and counted, and stops none of the others", async () => {
    const gone = await Promise.all([orphan(), orphan(), orphan()]);
    const poisoned = gone[1]!;
    const refusing = {
      async remove(uri: string) {
        if (uri === poisoned.uri) throw operatorError("objects-not-permitted", "The object store refused");
        await objects.remove(uri);
      },
    };
    const before = await counted("punctual_object_deletions_failed_total");
    const cleaner = createObjectCleaner({ authority: world.authority, objects: refusing, keptMs: DAY_MS });
    await cleaner.pass(goOn);
    expect(await Promise.all(gone.map((one) => stateOf(one.objectId)))).toEqual(["deleted", "deleting", "deleted"]);
    expect(await counted("punctual_object_deletions_failed_total")).toBe(before + 1);
    await cleaner.pass(goOn);
    expect(await counted("punctual_object_deletions_failed_total")).toBe(before + 1); // its time has not come
    await world.admin.query("update object set clean_at = clock_timestamp() where id = $1", [poisoned.objectId]);
    await createObjectCleaner({ authority: world.authority, objects, keptMs: DAY_MS }).pass(goOn);
    expect(await stateOf(poisoned.objectId)).toBe("deleted");
  });

  it("a store that refuses everything is asked a few times in a pass, not for every object", async () => {
    for (let i = 0; i < 12; i++) await orphan();
    let asked = 0;
    const down = {
      async remove() {
        asked++;
        throw operatorError("objects-unavailable", "The object store cannot be used at the moment");
      },
    };
    const cleaner = createObjectCleaner({ authority: world.authority, objects: down, keptMs: DAY_MS });
    expect((await cleaner.pass(goOn)).more).toBe(false);
    expect(asked).toBe(8);
    await createObjectCleaner({ authority: world.authority, objects, keptMs: DAY_MS }).pass(goOn);
  });

  it("from the store: broken uploads and what no row names go when they are a day old; what may be somebody else's stays", async () => {
    const kept = await publish();
    const { grant } = await running(world);
    const nameless = createObjectKey({ ...grant, name: "nameless.txt" });
    const young = createObjectKey({ ...grant, name: "young.txt" });
    const foreign = createObjectKey({
      runId: "0196a0c1-5c00-8123-8abc-0123456789ab",
      attempt: 1,
      fence: 1n,
      name: "foreign.txt",
    });
    for (const key of [nameless, young, foreign]) await objects.put(key, Buffer.from("x"), plain);
    mkdirSync(join(root, "lost+found"));
    writeFileSync(join(root, ".staging", "broken"), "half a rep");
    const nowAt = Date.now() + 3 * DAY_MS;
    const at = new Date(nowAt - DAY_MS / 2);
    utimesSync(join(root, young), at, at);

    const { authority } = world;
    const cleaner = createStoreCleaner({ authority, objects, clock: { now: () => nowAt } });
    expect(await cleaner.pass(goOn)).toEqual({ did: 2, more: false });
    const there = async (uri: string) => (await objects.stat({ uri, version: null })) !== undefined;
    expect(await there(kept.uri)).toBe(true);
    expect(await there(objects.uriOf(nameless))).toBe(false);
    expect(await there(objects.uriOf(young))).toBe(true);
    expect(await there(objects.uriOf(foreign))).toBe(true);
    expect(String(await buffer(await objects.open(kept)))).toBe("report");
    expect(readdirSync(join(root, ".staging"))).toEqual([]);
    expect(await counted("punctual_objects_of_unknown_runs")).toBe(1);
    expect(await cleaner.pass(goOn)).toEqual({ did: 0, more: false }); // until tomorrow
    await completeRuns(authority, [{ ...grant, output: null }]);
  });

  it("on a restored copy that nobody has recovered delete nothing: its original goes by what it has not seen", async () => {
    const [old, stale] = [await publish(), await orphan()];
    await world.admin.query("update object set referenced_at = referenced_at - interval '7 days' where id = $1", [
      old.objectId,
    ]);
    const { grant } = await running(world);
    const nameless = createObjectKey({ ...grant, name: "of-the-original.txt" });
    await objects.put(nameless, Buffer.from("x"), plain);
    writeFileSync(join(root, ".staging", "broken"), "half a rep");
    const { authority } = world;
    const clock = { now: () => Date.now() + 3 * DAY_MS };
    const [byRegistry, byStore] = [
      createObjectCleaner({ authority, objects, keptMs: 7 * DAY_MS }),
      createStoreCleaner({ authority, objects, clock }),
    ];
    const there = () =>
      Promise.all(
        [old.uri, stale.uri, objects.uriOf(nameless)].map(
          async (uri) => (await objects.stat({ uri, version: null })) !== undefined,
        ),
      );

    await world.admin.query("update authority_epoch set timeline = timeline + 1");
    expect(await byRegistry.pass(goOn)).toEqual({ did: 0, more: false });
    expect(await byStore.pass(goOn)).toEqual({ did: 0, more: false });
    expect(await there()).toEqual([true, true, true]);
    expect(await Promise.all([old, stale].map((one) => stateOf(one.objectId)))).toEqual(["referenced", "staged"]);
    expect(readdirSync(join(root, ".staging"))).toEqual(["broken"]);

    const who = { actor: "test", reason: "restored", anyway: false, nothingLost: false };
    expect(await recoverAuthority(authority, who)).toMatchObject({ kind: "recovered" });
    expect(await byRegistry.pass(goOn)).toMatchObject({ more: false });
    expect(await byStore.pass(goOn)).toMatchObject({ did: 2 });
    expect(await there()).toEqual([false, false, false]);
    await completeRuns(authority, [{ ...grant, output: null }]);
  });
});
