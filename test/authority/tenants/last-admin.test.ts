import { afterEach, beforeEach, expect, test } from "vitest";
import { mintKey } from "../../../src/api/keys.ts";
import { createApiKey } from "../../../src/authority/tenants/create-api-key.ts";
import { revokeApiKey } from "../../../src/authority/tenants/revoke-api-key.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

async function adminKey(tenantId: Uuid = world.tenantId): Promise<Uuid> {
  const made = await createApiKey(world.authority, { ...mintKey(), tenantId, role: "admin", label: "admin" });
  return made.kind === "created" ? made.keyId : "";
}
const revoke = (keyId: Uuid) => revokeApiKey(world.authority, { tenantId: world.tenantId, actor: "key_ops", keyId });

test("of the last two admin keys, revoked at once, one stays, also where they are of two tenants", async () => {
  const [mine, other] = [await adminKey(), await adminKey(await world.newTenant("another"))];
  const stranger = await world.stranger();
  await stranger.query("update api_key set revoked_at = clock_timestamp() where id = $1", [other]);
  const revoking = revoke(mine);
  await world.lockWaits();
  await stranger.commit();
  expect(await revoking).toEqual({ kind: "last-admin" });
});

test("an admin key that has expired goes, and does not count as one that stays", async () => {
  const [lasting, expired] = [await adminKey(), await adminKey()];
  await world.admin.query("update api_key set expires_at = clock_timestamp() where id = $1", [expired]);
  expect(await revoke(lasting)).toEqual({ kind: "last-admin" });
  expect(await revoke(expired)).toMatchObject({ kind: "revoked" });
});
