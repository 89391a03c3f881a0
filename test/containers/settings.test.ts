import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../src/app/config.ts";
import { containerRulesOf } from "../../src/app/kinds/container-settings.ts";
import { containersCheck } from "../../src/app/kinds/doctor-check.ts";
import { readRegistryAccounts } from "../../src/app/kinds/registry-accounts.ts";
import { call, startTestServer, type TestServer } from "../api/server.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

/** What an operator says of containers, and what callers are told of it. No engine is needed for that. */
const SETTINGS = { PUNCTUAL_CONTAINER_ENGINE: "docker", PUNCTUAL_CONTAINER_IMAGES: "registry.example.com/team/*" };

let server: TestServer;
let key: string;
beforeAll(async () => {
  server = await startTestServer({ containers: containerRulesOf(readConfig(SETTINGS)) });
  key = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server.close());

const CONTAINER = { kind: "container", image: "registry.example.com/team/app:1" };
const create = (job: Record<string, unknown>, at = server, by = key) =>
  call(at.url, "POST", "/v1/runs", { key: by, body: { job: { ...CONTAINER, ...job } } });

test("a container job is taken when its image is on the list, and refused with the list when it is not", async () => {
  expect((await create({})).status).toBe(201);
  expect(await create({ image: "busybox" })).toMatchObject({
    status: 403,
    body: {
      code: "image-not-allowed",
      errors: [{ field: "job.image", found: '"busybox"', allowed: "registry.example.com/team/*" }],
    },
  });
  expect((await create({ network: "host" })).body).toMatchObject({
    code: "invalid-request",
    errors: [{ field: "job.network", found: '"host"', allowed: "none" }],
  });
  expect((await create({ resources: { memoryMb: 4096 } })).body).toMatchObject({
    errors: [{ field: "job.resources.memoryMb", found: "4096", allowed: "at most 2048" }],
  });
  expect((await create({ env: { TOKEN: "{{secrets.token}}" } })).body).toMatchObject({
    errors: [{ field: "job.env.TOKEN" }],
  });
  expect((await create({ args: ["{{payload}}".repeat(60), "{{run.id}}".repeat(41)] })).body).toMatchObject({
    errors: [{ field: "job", allowed: "at most 100 placeholders in one job" }],
  });
});

test("an installation without an engine takes no container jobs", async () => {
  const bare = await startTestServer({ containers: containerRulesOf(readConfig({})) });
  const answer = await create({}, bare, await bare.key(await bare.tenant("acme"), "owner"));
  await bare.close();
  expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: "job.kind", found: '"container"' }] } });
});

test("settings that make no sense alone or together are refused by name", () => {
  const fault = (env: Record<string, string>) => {
    try {
      readConfig(env);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(fault({ PUNCTUAL_CONTAINER_IMAGES: "*" })).toMatch(/^PUNCTUAL_CONTAINER_ENGINE: is not set/);
  expect(fault({ ...SETTINGS, PUNCTUAL_CONTAINER_HOST: "tcp://x" })).toMatch(/^PUNCTUAL_CONTAINER_HOST: found/);
  expect(fault({ ...SETTINGS, PUNCTUAL_CONTAINER_HOST: "https://x:2376" })).toMatch(
    /^PUNCTUAL_CONTAINER_TLS_DIR: is not set/,
  );
  expect(fault({ ...SETTINGS, PUNCTUAL_CONTAINER_IMAGES: "a;b" })).toMatch(/^PUNCTUAL_CONTAINER_IMAGES: found "a;b"/);
  expect(fault(SETTINGS)).toBeUndefined();
});

test("accounts at registries are read as `docker login` writes them, and a fault in the file tells nothing of it", () => {
  const file = join(makeTemporaryFolder("punctual-accounts-"), "config.json");
  const auth = Buffer.from("robot:pa:ss").toString("base64");
  writeFileSync(
    file,
    JSON.stringify({ auths: { "https://index.docker.io/v1/": { auth }, "reg.example.com:5000": { auth } } }),
  );
  const account = { username: "robot", password: "pa:ss" };
  expect(Object.fromEntries(readRegistryAccounts(file))).toEqual({
    "docker.io": account,
    "reg.example.com:5000": account,
  });
  writeFileSync(
    file,
    JSON.stringify({ auths: { "reg.example.com": { auth: Buffer.from("hunter2").toString("base64") } } }),
  );
  expect(() => readRegistryAccounts(file)).toThrow(
    /^PUNCTUAL_CONTAINER_REGISTRIES: .* has no user and password for reg.example.com$/,
  );
});

test("the doctor says whether the engine answers", async () => {
  const look = (env: Record<string, string>) => containersCheck.examine({ config: readConfig(env) } as never);
  expect(await look({})).toMatchObject({ status: "skipped" });
  const away = { ...SETTINGS, PUNCTUAL_CONTAINER_HOST: "unix:///nowhere/podman.sock" };
  expect(await look(away)).toMatchObject({ status: "finding", sentence: expect.stringContaining("does not answer") });
});
