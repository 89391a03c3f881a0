import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../src/app/secrets/master-keys.ts";
import { createSigningKeys } from "../../src/authority/secrets/signing-keys.ts";
import { createVault } from "../../src/authority/secrets/vault.ts";
import { signedHeaders } from "../../src/handlers/outbound/signing.ts";
import { readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../api/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({}, 0, 4, createMasterKeys(newMasterKey("test")));
});
afterAll(() => server?.close());

type SigningKey = { keyId: string; state: string; activeUntil: string | null; replacedBy: string | null };
type Made = { key: string; signingKey: SigningKey; replaced: SigningKey };

async function tenant(name: string) {
  const tenantId = await server.tenant(name);
  const key = await server.key(tenantId, "owner");
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await call(server.url, method, `/v1/signing-keys${path}`, { key, body });
    return { ...answer, made: answer.body as unknown as Made };
  };
  return { tenantId, ask };
}

/** A process that has read nothing yet. */
const keysOf = (tenantId: string) => createSigningKeys(server.authority).keysOf(tenantId);

const body = '{"type":"run.succeeded"}';
async function verifies(tenantId: string, secret: string): Promise<boolean> {
  const headers = signedHeaders(await keysOf(tenantId), { id: "m1", atMs: Date.now(), body });
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

describe("a signing key", () => {
  it("is shown once, kept sealed, and signs for its own tenant alone", async () => {
    const [{ tenantId, ask }, other] = [await tenant("a"), await tenant("b")];
    expect(await keysOf(tenantId)).toEqual([]);
    const { status, made } = await ask("POST", "", { label: "CRM" });
    expect([status, made.key]).toEqual([201, expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)]);
    expect((await ask("GET", "")).text).not.toContain(made.key.slice(6));
    const rows = await server.db.query<{ row: string }>(
      sql(
        "test_sealed_keys",
        "select to_jsonb(k)::text || (select jsonb_agg(a)::text from audit_event a) as row from signing_key k",
      ),
    );
    expect(rows.map(({ row }) => row).join()).not.toContain(made.key.slice(6, 40));
    expect(await verifies(tenantId, made.key)).toBe(true);
    expect(await keysOf(other.tenantId)).toEqual([]);
    expect((await other.ask("DELETE", `/${made.signingKey.keyId}`)).status).toBe(404);
    expect((await other.ask("POST", `/${made.signingKey.keyId}/rotate`, {})).status).toBe(404);
  });

  it("that is rotated signs beside its successor until the overlap is over", async () => {
    const { tenantId, ask } = await tenant("rotating");
    const old = (await ask("POST", "", { label: "CRM" })).made;
    const { made } = await ask("POST", `/${old.signingKey.keyId}/rotate`, { overlapSeconds: 3_600 });
    expect([made.signingKey.state, made.replaced.state]).toEqual(["active", "expiring"]);
    expect([await verifies(tenantId, old.key), await verifies(tenantId, made.key)]).toEqual([true, true]);
    const again = await ask("POST", `/${old.signingKey.keyId}/rotate`, {});
    expect([again.status, again.body.code, again.body.replacedBy]).toEqual([
      409,
      "key-not-current",
      made.signingKey.keyId,
    ]);
    await server.db.query(sql("test_over", "update signing_key set active_until = clock_timestamp() where id = $1"), [
      readId("sgk", old.signingKey.keyId),
    ]);
    expect([await verifies(tenantId, old.key), await verifies(tenantId, made.key)]).toEqual([false, true]);
  });

  it("that is revoked signs nothing more, and is kept nowhere", async () => {
    const { tenantId, ask } = await tenant("revoking");
    const { made } = await ask("POST", "", { label: "CRM" });
    const path = `/${made.signingKey.keyId}`;
    expect((await ask("DELETE", path)).body).toMatchObject({ changed: true, signingKey: { state: "revoked" } });
    expect((await ask("DELETE", path)).body).toMatchObject({ changed: false });
    expect(await keysOf(tenantId)).toEqual([]);
    const [row] = await server.db.query<{ sealed: string | null }>(
      sql("test_gone", "select sealed from signing_key where id = $1"),
      [readId("sgk", made.signingKey.keyId)],
    );
    expect(row!.sealed).toBeNull();
  });

  it("is one of five at most, also where they are asked for at once", async () => {
    const { tenantId, ask } = await tenant("many");
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask("POST", "", { label: "CRM" })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 201, 201, 409, 409, 409]);
    expect(await keysOf(tenantId)).toHaveLength(5);
    const first = answers.find(({ status }) => status === 201)!.made.signingKey.keyId;
    expect((await ask("POST", `/${first}/rotate`, {})).body).toMatchObject({ code: "too-many-signing-keys", used: 5 });
    expect((await ask("POST", `/${first}/rotate`, { overlapSeconds: 0 })).status).toBe(201);
  });

  it("that cannot be opened is no reason to send unsigned", async () => {
    const { tenantId, ask } = await tenant("closed");
    await ask("POST", "", { label: "CRM" });
    const { db, clock } = server.authority;
    const without = createSigningKeys({ db, clock, vault: createVault(server.authority, undefined) });
    await expect(without.keysOf(tenantId)).rejects.toMatchObject({ code: "secret-unavailable" });
  });

  it("is gone by for five seconds after it was read", async () => {
    const { tenantId, ask } = await tenant("cached");
    const { made } = await ask("POST", "", { label: "CRM" });
    let nowMs = 0;
    const { db, vault, clock } = server.authority;
    const keys = createSigningKeys({ db, vault, clock: { ...clock, monotonic: () => nowMs } });
    expect(await keys.keysOf(tenantId)).toHaveLength(1);
    await ask("DELETE", `/${made.signingKey.keyId}`);
    nowMs = 4_999;
    expect(await keys.keysOf(tenantId)).toHaveLength(1);
    nowMs = 5_000;
    expect(await keys.keysOf(tenantId)).toEqual([]);
  });
});
