import { afterEach, beforeEach, expect, test } from "vitest";
import { mintKey } from "../../../src/api/keys.ts";
import { createApiKey } from "../../../src/authority/tenants/create-api-key.ts";
import { noteKeyUse } from "../../../src/authority/tenants/note-key-use.ts";
import { readApiKey } from "../../../src/store/reads/keys.ts";
import { createWorld, type World } from "../../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

test("noting the use of keys waits for nobody who holds one, so two processes cannot wait for each other", async () => {
  const { tenantId } = world;
  const make = async () => {
    const made = await createApiKey(world.authority, { ...mintKey(), tenantId, role: "viewer", label: "a key" });
    return made.kind === "created" ? made.keyId : "";
  };
  const [held, free] = [await make(), await make()];
  const stranger = await world.stranger();
  await stranger.query("select 1 from api_key where id = $1 for update", [held]);
  await noteKeyUse(world.authority, [free, held]);
  const isNoted = async (id: string) => (await readApiKey(world.db, tenantId, id))?.lastUsedAt !== null;
  expect([await isNoted(held), await isNoted(free)]).toEqual([false, true]);
  await stranger.commit();
  await noteKeyUse(world.authority, [free, held]);
  expect(await isNoted(held)).toBe(true);
});
