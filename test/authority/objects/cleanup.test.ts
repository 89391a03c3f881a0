import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { cleanObjects, findExpiredResults, findOrphanObjects } from "../../../src/authority/objects/clean-objects.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { pinResult } from "../../../src/authority/objects/pin-result.ts";
import { findGoingObjects, settleDeletions } from "../../../src/authority/objects/settle-deletions.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import type { TestFaultPoints } from "../../../src/kernel/faults.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { running, stateOf } from "../scenes.ts";

const DAY_MS = 86_400_000;
const KEPT_MS = 7 * DAY_MS;

describe("objects and their cleanup", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  const objectOf = async (id: Uuid) => (await world.admin.query("select * from object where id = $1", [id])).rows[0];
  const publish = (grant: Grant, output: { objectId: Uuid; sha256: string }, authority = world.authority) =>
    completeRuns(authority, [{ runId: grant.runId, fence: grant.fence, output }]);
  const clean = (id: Uuid, authority = world.authority) => cleanObjects(authority, [id], KEPT_MS);
  const setBack = (id: Uuid, column: string, ms: number) =>
    world.admin.query(`update object set ${column} = clock_timestamp() - $2 * interval '1 ms' where id = $1`, [id, ms]);
  /** As if the run had ended, and its result had been accepted, when results of that time are not kept any more. */
  const grow = async (id: Uuid, ms = KEPT_MS) => {
    await setBack(id, "referenced_at", ms);
    await world.admin.query(
      `update run set finished_at = clock_timestamp() - $2 * interval '1 ms' where result_object = $1`,
      [id, ms],
    );
  };
  const published = async () => {
    const { grant } = await running(world);
    const output = await world.stage(grant, "report");
    expect(await publish(grant, output)).toEqual([{ kind: "accepted" }]);
    return { grant, id: output.objectId };
  };
  const lost = async (grant: Grant) => {
    await world.expireLease(grant.runId);
    expect(await expireLeases(world.authority, [grant.runId], 0)).toBe(1);
  };

  describe("publish / cleanup", () => {
    it("a publication under way wins: its object is left alone, and stays the result", async () => {
      const { grant } = await running(world);
      const output = await world.stage(grant, "report");
      const written = world.faults.hold("complete:written");
      const end = publish(grant, output);
      await written.arrived;
      // The cleaner reads the object before, and the run after the publication has committed: it has no attempt any more.
      const sweeper = world.another();
      const read = (sweeper.faults as TestFaultPoints).hold("clean-objects:locked");
      const cleanup = clean(output.objectId, sweeper);
      await read.arrived;
      written.release();
      expect(await end).toEqual([{ kind: "accepted" }]);
      read.release();
      expect(await cleanup).toEqual([]);
      expect(await objectOf(output.objectId)).toMatchObject({ state: "referenced" });
    });

    it("a deletion under way wins: the publication that waited for it is refused", async () => {
      const { grant } = await running(world);
      const output = await world.stage(grant, "report");
      // Whatever made the cleaner take it for an orphan: here its grant was over.
      await setBack(output.objectId, "granted_until", 120_000);
      const marked = world.faults.hold("clean-objects:written");
      const cleanup = clean(output.objectId);
      await marked.arrived;
      const end = publish(grant, output, world.another());
      await world.lockWaits();
      marked.release();
      expect(await cleanup).toEqual([output.objectId]);
      expect(await end).toEqual([{ kind: "object-unusable", found: "deleting" }]);
      expect(await stateOf(world, grant.runId)).toBe("running");
      await completeRuns(world.authority, [{ ...grant, output: null }]);
    });

    it("a deletion under way wins over the staging that waited for it, too", async () => {
      const { grant } = await running(world);
      const output = await world.stage(grant, "report");
      await setBack(output.objectId, "granted_until", 120_000);
      const marked = world.faults.hold("clean-objects:written");
      const cleanup = clean(output.objectId);
      await marked.arrived;
      const { objectId, sha256 } = output;
      const request = { runId: grant.runId, fence: grant.fence, objectId, uri: "test:x", version: "1", size: 6 };
      const staging = stageObject(world.another(), { ...request, sha256: "b".repeat(64) });
      await world.lockWaits();
      marked.release();
      expect(await cleanup).toEqual([objectId]);
      expect(await staging).toEqual({ kind: "no-grant", found: "deleting" });
      expect(await stageObject(world.authority, { ...request, sha256 })).toEqual({
        kind: "no-grant",
        found: "deleting",
      });
      await completeRuns(world.authority, [{ ...grant, output: null }]);
    });

    it("an object of a running attempt is nobody's to delete, a stale worker's is", async () => {
      const { grant } = await running(world);
      const { objectId } = await world.stage(grant, "report");
      expect(await findOrphanObjects(world.authority, 100)).not.toContain(objectId);
      expect(await clean(objectId)).toEqual([]);
      await lost(grant);
      expect(await findOrphanObjects(world.authority, 100)).toContain(objectId);
      expect(await clean(objectId)).toEqual([objectId]);
      expect(await clean(objectId)).toEqual([]);
      expect(await objectOf(objectId)).toMatchObject({ state: "deleting", deleting_at: expect.any(Date) });
    });
  });

  describe("the permission to upload", () => {
    const grantOf = (grant: Grant, name = "result") => ({
      runId: grant.runId,
      fence: grant.fence,
      name,
      uri: `test:${grant.runId}/${name}`,
      mediaType: "text/plain",
    });
    const facts = { uri: "test:x", version: "1", sha256: "a".repeat(64), size: 1 };

    it("ends with the lease: what arrives later cannot be staged until the lease is renewed", async () => {
      const { grant } = await running(world);
      const granted = await grantUpload(world.authority, grantOf(grant));
      if (granted.kind !== "granted") throw new Error(granted.kind);
      const { rows } = await world.admin.query("select lease_until from live_run where id = $1", [grant.runId]);
      expect(granted.untilAt).toBeCloseTo((rows[0].lease_until as Date).getTime(), -1);
      const request = { ...facts, runId: grant.runId, fence: grant.fence, objectId: granted.objectId };
      await world.expireLease(grant.runId);
      expect(await stageObject(world.authority, request)).toEqual({ kind: "lease-lapsed" });
      expect(await grantUpload(world.authority, grantOf(grant))).toEqual({ kind: "lease-lapsed" });
      await lost(grant);
      expect(await stageObject(world.authority, request)).toEqual({ kind: "stale-fence" });
      expect(await grantUpload(world.authority, grantOf(grant))).toEqual({ kind: "stale-fence" });
    });

    it("a lease that ended while the object's lock was waited for is over", async () => {
      const { grant } = await running(world);
      const granted = await grantUpload(world.authority, grantOf(grant));
      if (granted.kind !== "granted") throw new Error(granted.kind);
      const stranger = await world.stranger();
      await stranger.query("select 1 from live_run where id = $1 for update", [grant.runId]);
      const request = { ...facts, runId: grant.runId, fence: grant.fence, objectId: granted.objectId };
      const staging = stageObject(world.authority, request);
      await world.lockWaits();
      await stranger.query("update live_run set lease_until = clock_timestamp() where id = $1", [grant.runId]);
      await stranger.commit();
      expect(await staging).toEqual({ kind: "lease-lapsed" });
      await lost(grant);
    });

    it("asked for again after a lost reply it is the same one: a key has one row", async () => {
      const { grant } = await running(world);
      const first = await grantUpload(world.authority, grantOf(grant));
      const again = await grantUpload(world.authority, grantOf(grant));
      expect(again).toMatchObject({ kind: "granted", objectId: (first as { objectId: Uuid }).objectId });
      expect(await grantUpload(world.authority, grantOf(grant, "other"))).not.toMatchObject(first);
      await completeRuns(world.authority, [{ ...grant, output: null }]);
    });

    it("that is over stages nothing, though the lease goes on", async () => {
      const { grant } = await running(world);
      const granted = await grantUpload(world.authority, grantOf(grant));
      if (granted.kind !== "granted") throw new Error(granted.kind);
      await setBack(granted.objectId, "granted_until", 1);
      const request = { ...facts, runId: grant.runId, fence: grant.fence, objectId: granted.objectId };
      expect(await stageObject(world.authority, request)).toEqual({ kind: "no-grant", found: "an expired grant" });
      await completeRuns(world.authority, [{ ...grant, output: null }]);
    });

    it("of another attempt does not stage this one's object", async () => {
      const [mine, other] = [await running(world), await running(world)];
      const granted = await grantUpload(world.authority, grantOf(mine.grant));
      if (granted.kind !== "granted") throw new Error(granted.kind);
      const request = { ...facts, runId: other.grant.runId, fence: other.grant.fence, objectId: granted.objectId };
      expect(await stageObject(world.authority, request)).toEqual({ kind: "no-grant", found: "another attempt's" });
      await completeRuns(
        world.authority,
        [mine.grant, other.grant].map((one) => ({ ...one, output: null })),
      );
    });
  });

  describe("results", () => {
    it("are kept for their time, and then go; the run keeps what they were", async () => {
      const { grant, id } = await published();
      expect(await clean(id)).toEqual([]);
      await grow(id, KEPT_MS - 60_000);
      expect(await clean(id)).toEqual([]);
      await grow(id);
      expect(await findExpiredResults(world.authority, 10, KEPT_MS)).toContain(id);
      expect(await clean(id)).toEqual([id]);
      expect(await world.run(grant.runId)).toMatchObject({
        state: "succeeded",
        result_sha256: expect.any(String),
        result_size: 6n,
      });
    });

    it("that a link was given for stay until it has died, and one that goes gets no link", async () => {
      const { grant, id } = await published();
      await grow(id);
      const pin = () => pinResult(world.authority, { tenantId: world.tenantId, runId: grant.runId, forMs: 300_000 });
      expect(await pin()).toBe(true);
      expect(await findExpiredResults(world.authority, 10, KEPT_MS)).not.toContain(id);
      expect(await clean(id)).toEqual([]);
      await setBack(id, "pin_until", 1);
      expect(await clean(id)).toEqual([id]);
      expect(await pin()).toBe(false);
    });

    it("that a link was given for stay a while longer than it, for clocks differ, and another tenant's link is none", async () => {
      const { grant, id } = await published();
      const pin = (tenantId: Uuid) => pinResult(world.authority, { tenantId, runId: grant.runId, forMs: 300_000 });
      expect(await pin(await world.newTenant("a stranger"))).toBe(false);
      expect(await objectOf(id)).toMatchObject({ pin_until: null });
      expect(await pin(world.tenantId)).toBe(true);
      const { rows } = await world.admin.query(
        "select extract(epoch from pin_until - clock_timestamp())::float8 as s from object where id = $1",
        [id],
      );
      expect(rows[0].s).toBeGreaterThan(330);
    });

    it("that two links were given for stay until the last of them has died, whichever was given first", async () => {
      const { grant, id } = await published();
      const pin = async (forMs: number) => {
        await pinResult(world.authority, { tenantId: world.tenantId, runId: grant.runId, forMs });
        return (await objectOf(id)).pin_until as Date;
      };
      const long = await pin(3_600_000);
      expect(await pin(60_000)).toEqual(long);
      expect((await pin(7_200_000)) > long).toBe(true);
    });

    it("pin / cleanup: a link that is being given keeps the result, one that waited for the deletion is refused", async () => {
      const { grant, id } = await published();
      await grow(id);
      const stranger = await world.stranger();
      await stranger.query("update object set pin_until = clock_timestamp() + interval '5 min' where id = $1", [id]);
      expect(await clean(id)).toEqual([]); // its row is held: left for the next pass
      await stranger.commit();
      expect(await clean(id)).toEqual([]);
      await setBack(id, "pin_until", 1);
      const marked = world.faults.hold("clean-objects:written");
      const cleanup = clean(id);
      await marked.arrived;
      const pin = pinResult(world.another(), { tenantId: world.tenantId, runId: grant.runId, forMs: 300_000 });
      await world.lockWaits();
      marked.release();
      expect(await cleanup).toEqual([id]);
      expect(await pin).toBe(false);
    });

    /** An effect in this state speaks of the result. */
    const needs = (grant: Grant, id: Uuid, state: string) =>
      world.admin.query(
        `insert into effect (id, tenant_id, run_id, object_id, kind, name, action_id, state, request, lease_until, fence, claim_id, first_sent_at)
         values ($1::uuid, $2, $3, $4, 'email', 'mail', 'mail-run_' || $1::uuid, $5::text, '{}',
                 case when $5::text = 'sending' then clock_timestamp() end, 1, $1::uuid, clock_timestamp())`,
        [crypto.randomUUID(), world.tenantId, grant.runId, id, state],
      );

    it.each(["pending", "sending", "uncertain"])(
      "that an effect (%s) still needs stay until it is settled",
      async (state) => {
        const { grant, id } = await published();
        await grow(id);
        await needs(grant, id, state);
        expect(await findExpiredResults(world.authority, 10, KEPT_MS)).not.toContain(id);
        expect(await clean(id)).toEqual([]);
        await world.admin.query(
          "update effect set state = 'sent', settled_at = clock_timestamp(), lease_until = null where object_id = $1",
          [id],
        );
        expect(await clean(id)).toEqual([id]);
      },
    );

    it("that an effect has come to need before the cleaner held them stay: what holds on to them is read under the lock", async () => {
      const { grant, id } = await published();
      await grow(id);
      const sweeper = world.another();
      const locked = (sweeper.faults as TestFaultPoints).hold("clean-objects:locked");
      const cleanup = clean(id, sweeper);
      await locked.arrived;
      await needs(grant, id, "pending");
      locked.release();
      expect(await cleanup).toEqual([]);
      expect(await objectOf(id)).toMatchObject({ state: "referenced" });
    });

    it("are not taken away by a second row of the same key, which an older program may have left", async () => {
      const { grant, id } = await published();
      const { rows } = await world.admin.query(
        `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, media_type, granted_until)
         select gen_random_uuid(), tenant_id, run_id, attempt, fence, name, 'granted', uri, media_type, granted_until
           from object where id = $1 returning id`,
        [id],
      );
      expect(await findOrphanObjects(world.authority, 100)).not.toContain(rows[0].id);
      expect(await clean(rows[0].id)).toEqual([]);
      await grow(id);
      expect(await clean(id)).toEqual([id]);
      expect(await clean(rows[0].id)).toEqual([rows[0].id]);
      expect(grant.runId).toBeDefined();
    });
  });

  describe("deletions", () => {
    const due = async (id: Uuid) => (await findGoingObjects(world.authority, 1000)).find((one) => one.id === id);
    const orphan = async () => {
      const { grant } = await running(world);
      const { objectId } = await world.stage(grant, "report");
      await lost(grant);
      await clean(objectId);
      return objectId;
    };

    it("of orphans are done once more an hour after the last permission ended, and then forgotten", async () => {
      const id = await orphan();
      expect(await due(id)).toMatchObject({ todo: "delete", why: "orphan" });
      await settleDeletions(world.authority, [{ id, outcome: "removed" }]);
      const { granted_until, clean_at, state } = await objectOf(id);
      expect(state).toBe("deleted");
      expect((clean_at as Date).getTime()).toBe((granted_until as Date).getTime() + 3_600_000);
      expect(await due(id)).toBeUndefined();
      // A second cleaner that was slower changes nothing.
      await settleDeletions(world.authority, [{ id, outcome: "failed" }]);
      expect((await objectOf(id)).clean_at).toEqual(clean_at);

      await setBack(id, "granted_until", 3_600_000);
      await setBack(id, "clean_at", 0);
      await setBack(id, "deleted_at", 60_000);
      expect(await due(id)).toMatchObject({ todo: "delete", why: "again" });
      await settleDeletions(world.authority, [{ id, outcome: "removed" }]);
      expect(await due(id)).toBeUndefined();
      await setBack(id, "clean_at", 0);
      expect(await due(id)).toMatchObject({ todo: "forget" });
      await settleDeletions(world.authority, [{ id, outcome: "forget" }]);
      expect(await objectOf(id)).toBeUndefined();
    });

    it("of old results are done once: no upload to their key is under way", async () => {
      const { id } = await published();
      await grow(id);
      await setBack(id, "granted_until", KEPT_MS);
      await clean(id);
      expect(await due(id)).toMatchObject({ todo: "delete", why: "expired", size: 6 });
      await settleDeletions(world.authority, [{ id, outcome: "removed" }]);
      expect((await objectOf(id)).clean_at.getTime()).toBeGreaterThan(Date.now() + 29 * DAY_MS);
    });

    it("that failed are put off, longer each time", async () => {
      const id = await orphan();
      const pauses: number[] = [];
      for (let tries = 1; tries <= 3; tries++) {
        await settleDeletions(world.authority, [{ id, outcome: "failed" }]);
        const row = await objectOf(id);
        expect(row).toMatchObject({ state: "deleting", clean_tries: tries });
        pauses.push(Math.round((row.clean_at.getTime() - Date.now()) / 1000));
        expect(await due(id)).toBeUndefined();
        await setBack(id, "clean_at", 0);
      }
      expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
      expect(await due(id)).toMatchObject({ todo: "delete" });
    });
  });
});
