import { createSecretKey } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { readConfig } from "../../src/app/config.ts";
import { examine } from "../../src/app/doctor/doctor.ts";
import { callPatient } from "../../src/app/doctor/patient.ts";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../src/app/secrets/master-keys.ts";
import { runAdHoc } from "../../src/authority/runs/run-ad-hoc.ts";
import { beginDataKey } from "../../src/authority/secrets/begin-data-key.ts";
import { FIRST_KEY, rewrapDataKeys } from "../../src/authority/secrets/rewrap-data-keys.ts";
import { createVault, type Vault } from "../../src/authority/secrets/vault.ts";
import { workSchema } from "../../src/domain/definition.ts";
import { macOfRequest, open, seal } from "../../src/domain/secrets/sealing.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { punctual } from "../app/cli/punctual.ts";
import { startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

const OLD = newMasterKey("old");
const NEW = newMasterKey("new");
const STRANGE = newMasterKey("strange");

let world: World;

beforeAll(async () => {
  world = await createWorld();
});

afterAll(async () => {
  await world.close();
});

const vaultWith = (keys: string): Vault => createVault(world.authority, createMasterKeys(keys));
const opens = async (vault: Vault, tenantId: string, text: string) =>
  [...(await vault.open(tenantId, [text])).values()][0];
const secrets = (keys: string, ...args: string[]) =>
  punctual(["secrets", ...args], { DATABASE_URL: world.url, PUNCTUAL_SECRET_KEYS: keys });

it("after a rewrap the old master key can go, and what was sealed under it still opens", async () => {
  const sealed: [string, string][] = [];
  for (const name of ["a", "b", "c"]) {
    const tenantId = await world.newTenant(name);
    sealed.push([tenantId, (await vaultWith(OLD).sealer(tenantId))(`secret of ${name}`)]);
  }
  const rotated = await secrets(OLD, "rotate", "--tenant", "a", "--json");
  expect(JSON.parse(rotated.out)).toMatchObject({ retired: sealed[0]![1].split(".")[1] });
  sealed.push([sealed[0]![0], (await vaultWith(OLD).sealer(sealed[0]![0]))("a second of a")]);
  expect(sealed[3]![1].split(".")[1]).toBe(JSON.parse(rotated.out).dataKeyId);
  await expect(opens(vaultWith(NEW), ...sealed[0]!)).rejects.toThrow("wrapped by master key old");

  const both = `${NEW},${OLD}`;
  expect((await secrets(both, "rewrap")).out).toBe("Rewrapped 4 data keys with new.\n");
  expect((await secrets(both, "rewrap")).out).toBe("Rewrapped 0 data keys with new.\n");
  expect(JSON.parse((await secrets(NEW, "status", "--json")).out)).toEqual({
    newest: "new",
    keys: [{ masterKeyId: "new", keys: 4, inUse: 3, configured: true }],
  });
  const alone = vaultWith(NEW);
  const found = await Promise.all(sealed.map(([tenantId, text]) => opens(alone, tenantId, text)));
  expect(found).toEqual(["secret of a", "secret of b", "secret of c", "a second of a"]);
  await expect(opens(vaultWith(OLD), ...sealed[1]!)).rejects.toThrow("wrapped by master key new");
});

it("a rewrap goes on in pieces, begins anew where it broke off, and leaves alone what it cannot open", async () => {
  const strangeTenant = await world.newTenant("strange");
  await vaultWith(STRANGE).sealer(strangeTenant);
  const keys = createMasterKeys(`${OLD},${NEW}`);
  const first = await rewrapDataKeys(world.authority, keys, { after: FIRST_KEY, limit: 2 });
  expect(first).toMatchObject({ rewrapped: 2, failed: [] });
  let rewrapped = 0;
  let failed = 0;
  for (let after: typeof first.next = FIRST_KEY; after !== undefined; ) {
    const done = await rewrapDataKeys(world.authority, keys, { after, limit: 1 });
    rewrapped += done.rewrapped;
    failed += done.failed.length;
    after = done.next;
  }
  expect([rewrapped, failed]).toEqual([2, 1]);
  const said = await secrets(`${OLD},${NEW}`, "rewrap");
  expect([said.exitCode, said.out]).toEqual([
    1,
    "Rewrapped 0 data keys with old.\n1 do not open with the master keys set here: strange\n",
  ]);
  await world.admin.query("delete from tenant_data_key where tenant_id = $1", [strangeTenant]);
});

it("a request that was written down before its tenant had another data key is known again", async () => {
  const vault = vaultWith(OLD);
  const [before] = await vault.macsOf(world.tenantId, "a body");
  await beginDataKey(world.authority, createMasterKeys(OLD), { tenantId: world.tenantId, actor: "test", rotate: true });
  const after = await vaultWith(OLD).macsOf(world.tenantId, "a body");
  expect(after[0]!.equals(before!)).toBe(false);
  expect(after.some((mac) => mac.equals(before!))).toBe(true);
  expect((await vault.macsOf(world.tenantId, "another body")).some((mac) => mac.equals(before!))).toBe(false);
});

it("the doctor finds data keys that no master key opens, and says no word of any key", async () => {
  const look = async (keys: string) => {
    const patient = await callPatient(readConfig({ DATABASE_URL: world.url, PUNCTUAL_SECRET_KEYS: keys }));
    const [diagnosis] = await examine(patient, () => undefined, ["secret-keys"]);
    await patient.release();
    return diagnosis!;
  };
  expect(await look(OLD)).toMatchObject({ status: "ok" });
  expect(await look(`${NEW},${OLD}`)).toMatchObject({ sentence: expect.stringContaining("punctual secrets rewrap") });
  // The right id with other bytes is not the right key.
  for (const keys of [NEW, newMasterKey("old")]) {
    const found = await look(keys);
    expect(found).toMatchObject({ status: "finding", sentence: expect.stringContaining("they name old") });
    expect(JSON.stringify(found)).not.toContain(keys.split(":")[1]);
  }
});

it("a setting that cannot be used says which entry, and nothing of what it is", async () => {
  const [, material] = OLD.split(":");
  for (const wrong of [material!, `old:${material!.slice(4)}`, `${OLD},${OLD}`, `${OLD};${NEW}`]) {
    expect(() => readConfig({ PUNCTUAL_SECRET_KEYS: wrong })).toThrow(/^PUNCTUAL_SECRET_KEYS: entry [12] /);
    const said = await punctual(["secrets", "status"], { PUNCTUAL_SECRET_KEYS: wrong });
    expect(said.exitCode).not.toBe(0);
    expect(said.out + said.err).not.toContain(material!.slice(6, 20));
  }
});

it("a worker without the key fails the attempt for the moment, without a word of the secret; one with it runs it", async () => {
  const seen: unknown[] = [];
  const job = defineJob({
    name: "test.see",
    version: 1,
    input: z.looseObject({}),
    run: (_ctx, input) => void seen.push(input),
  });
  const text = (await vaultWith(OLD).sealer(world.tenantId))({ user: "u", password: "quiet words" });
  const made = await runAdHoc(world.authority, {
    tenantId: world.tenantId,
    actor: "test",
    work: workSchema.parse({ job: { kind: "function", name: "test.see" }, retry: { baseMs: 1, capMs: 1 } }),
    payload: { login: { $sealed: text }, list: [1, { $sealed: text }] },
  });
  const runId = (made as { runId: string }).runId;
  const attempts = async () =>
    (
      await world.admin.query("select outcome, error_code, error_message from attempt where run_id = $1 order by n", [
        runId,
      ])
    ).rows;
  const without = await startNode({
    roles: ["worker"],
    url: world.url,
    jobs: [job],
    config: { PUNCTUAL_SECRET_KEYS: NEW },
  });
  await until("it fails", async () => (await attempts())[0]?.outcome === "failed");
  await without.stop();
  const [failed] = await attempts();
  expect(failed).toMatchObject({
    error_code: "secret-unavailable",
    error_message: expect.stringContaining("master key old"),
  });
  expect(failed.error_message).not.toContain(text.slice(-20));
  const { rows } = await world.admin.query(
    "select not_before > clock_timestamp() + interval '5 s' as later from live_run",
  );
  expect(rows).toEqual([{ later: true }]);

  await world.makeAvailable();
  const withIt = await startNode({
    roles: ["worker"],
    url: world.url,
    jobs: [job],
    config: { PUNCTUAL_SECRET_KEYS: OLD },
  });
  await until("it succeeds", async () => (await world.run(runId)).state === "succeeded", 60_000, attempts);
  await withIt.stop();
  const plain = { user: "u", password: "quiet words" };
  expect(seen).toEqual([{ login: plain, list: [1, plain] }]);
});

it("a payload whose sealed value came from another tenant is not run", async () => {
  const other = await world.newTenant("rival");
  const text = (await vaultWith(OLD).sealer(world.tenantId))("not for rivals");
  await vaultWith(OLD).sealer(other);
  const made = await runAdHoc(world.authority, {
    tenantId: other,
    actor: "test",
    work: workSchema.parse({ job: { kind: "function", name: "test.see" }, retry: { maxAttempts: 1 } }),
    payload: { login: { $sealed: text } },
  });
  const client = new pg.Client(world.url);
  await client.connect();
  // Not even with the key's row.
  await client.query(
    `insert into tenant_data_key (tenant_id, id, wrapped, master_key_id, retired_at)
     select $1, id, wrapped, master_key_id, clock_timestamp() from tenant_data_key where tenant_id = $2`,
    [other, world.tenantId],
  );
  await client.end();
  const seen: unknown[] = [];
  const job = defineJob({
    name: "test.see",
    version: 1,
    input: z.looseObject({}),
    run: (_ctx, input) => void seen.push(input),
  });
  const node = await startNode({
    roles: ["worker"],
    url: world.url,
    jobs: [job],
    config: { PUNCTUAL_SECRET_KEYS: OLD },
  });
  const { runId } = made as { runId: string };
  await until("it fails", async () => (await world.run(runId)).state === "failed");
  await node.stop();
  expect(await world.run(runId)).toMatchObject({ state: "failed" });
  expect(seen).toEqual([]);
});

it("both locks hold alone: a data key wrapped for one tenant, and a secret sealed for one, open for no other", () => {
  const keys = createMasterKeys(OLD);
  const [mine, rival, id] = [world.tenantId, mintId(Date.now(), 0), mintId(Date.now(), 0)];
  const row = keys.wrap({ tenantId: mine, id }, Buffer.alloc(32, 7));
  expect(keys.unwrap({ tenantId: mine, id }, row)).toBeDefined();
  expect(keys.unwrap({ tenantId: rival, id }, row)).toBeUndefined();
  expect(keys.unwrap({ tenantId: mine, id: mintId(Date.now(), 0) }, row)).toBeUndefined();
  const dataKey = { tenantId: mine, id, key: createSecretKey(Buffer.alloc(32, 7)) };
  const text = seal(dataKey, "quiet");
  expect(open(dataKey, text)).toEqual({ value: "quiet" });
  expect(open({ ...dataKey, tenantId: rival }, text)).toBeUndefined();
  expect(open({ ...dataKey, id: mintId(Date.now(), 0) }, text)).toBeUndefined();
  expect(open(dataKey, `${text.slice(0, -4)}AAAA`)).toBeUndefined();
  expect(macOfRequest(dataKey, "a body").equals(macOfRequest({ ...dataKey, tenantId: rival }, "a body"))).toBe(false);
});
