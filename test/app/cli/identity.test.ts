import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type Up } from "./punctual.ts";

let up: Up;
beforeAll(async () => {
  up = await startUp();
});
afterAll(async () => {
  await up.stop();
  up.remove();
});

const json = async (...args: string[]) => {
  const { out, err, exitCode } = await up.run(...args, "--json");
  expect(exitCode, err).toBe(0);
  return JSON.parse(out);
};
const KEY = /^pk_[0-9a-f]{12}_[\w-]{43}\n$/;

test("a new key alone is on standard output, and works; the list shows how it begins and how it stands", async () => {
  const made = await up.run("keys", "create", "--label", "CI", "--role", "viewer", "--expires-in-days", "3");
  expect([made.exitCode, made.out]).toEqual([0, expect.stringMatching(KEY)]);
  expect(made.err).toMatch(/^Made key_\w+: CI, viewer, until \d{4}-/);
  const key = made.out.trim();
  expect((await up.run("schedules", "list", "--key", key)).exitCode).toBe(0);
  const { out } = await up.run("keys", "list");
  expect(out).toMatch(new RegExp(`^key_\\w+ +${key.slice(0, 15)} +CI +viewer +expiring `, "m"));
  expect(out).toMatch(/^key_\w+ +pk_\w+ +demo +admin +active +never /m);
});

test("a rotated key works beside the new one for the overlap; a revoked one ends", async () => {
  const { apiKey } = await json("keys", "create", "--label", "rotated", "--role", "viewer");
  const rotated = await up.run("keys", "rotate", apiKey.keyId, "--overlap", "1h");
  expect([rotated.exitCode, rotated.out]).toEqual([0, expect.stringMatching(KEY)]);
  expect(rotated.err).toContain(`${apiKey.keyId} works until `);
  const again = await up.run("keys", "rotate", apiKey.keyId);
  expect([again.exitCode, again.err]).toEqual([1, expect.stringMatching(/replaced by key_/)]);
  expect((await up.run("keys", "revoke", apiKey.keyId)).out).toBe(`Revoked ${apiKey.keyId} (rotated)\n`);
  expect((await up.run("keys", "revoke", apiKey.keyId)).out).toBe(`${apiKey.keyId} was revoked already\n`);
  expect((await up.run("keys", "rotate", apiKey.keyId, "--overlap", "60d")).exitCode).toBe(2);
});

test("a tenant is made, acted for, held to jobs, suspended and resumed", async () => {
  const { tenantId } = await json("tenants", "create", "--name", "Acme", "--jobs", "report.run-summary");
  expect((await up.run("tenants", "list")).out).toMatch(/^ten_\w+ +Acme +active +report\.run-summary /m);
  const { key } = await json("keys", "create", "--tenant", tenantId, "--label", "first", "--role", "owner");
  const CREATE = ["schedules", "create", "--name", "S", "--every", "1h", "--job", "report.run-summary@1"];
  expect((await up.run(...CREATE, "--key", key)).exitCode).toBe(0);
  const listed = (await json("schedules", "list", "--tenant", tenantId)).items as { name: string }[];
  expect(listed.map((one) => one.name)).toEqual(["S"]);
  await up.run("tenants", "edit", tenantId, "--jobs", "none");
  expect((await up.run("tenants", "show", tenantId)).out).toMatch(/^jobs +none$/m);
  const edit = (...words: string[]) => up.run("tenants", "edit", tenantId, ...words);
  await edit("--outbound-allow", "10.2.0.0/16", "--outbound-hosts", "*.example.com, 10.2.0.9");
  expect((await edit("--outbound-ports", "443")).out).toMatch(
    /^outbound +public addresses and 10\.2\.0\.0\/16; hosts \*\.example\.com, 10\.2\.0\.9; ports 443$/m,
  );
  expect((await edit("--outbound-hosts", "all", "--outbound-ports", "all", "--outbound-allow", "none")).out).toMatch(
    /^outbound +public addresses$/m,
  );
  const misspelt = await edit("--outbound-allow", "10.2.0.0/99");
  expect([misspelt.exitCode, misspelt.err]).toEqual([1, expect.stringContaining("(--outbound-allow)")]);
  expect((await edit("--outbound-ports", "https")).exitCode).toBe(2);
  expect((await up.run("tenants", "suspend", tenantId)).out).toBe(`${tenantId} (Acme) is suspended\n`);
  expect((await up.run("tenants", "suspend", tenantId)).out).toBe(`${tenantId} (Acme) was suspended already\n`);
  expect((await json("tenants", "list", "--status", "suspended")).items).toHaveLength(1);
  expect((await up.run("tenants", "resume", tenantId)).out).toBe(`${tenantId} (Acme) is active\n`);
  const refused = await up.run("tenants", "list", "--key", key);
  expect([refused.exitCode, refused.err]).toEqual([1, expect.stringMatching(/needs one of the roles admin/)]);
  const wrong = await up.run("schedules", "list", "--tenant", "Acme");
  expect([wrong.exitCode, wrong.err]).toEqual([2, expect.stringMatching(/--tenant: found "Acme"/)]);
});

test("where there is no key to ask with, whoever has the database makes the first one", async () => {
  const made = await up.run("keys", "first", "--name", "platform");
  expect([made.exitCode, made.out]).toEqual([0, expect.stringMatching(KEY)]);
  const { items } = await json("tenants", "list", "--key", made.out.trim());
  expect((items as { name: string }[]).map((one) => one.name)).toContain("platform");
});
