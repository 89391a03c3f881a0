import { newMasterKey } from "../../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../../src/app/secrets/master-keys.ts";
import { type Answer, call, SECRET, startTestServer, type TestServer } from "../../api/server.ts";
import { type Node, startNode, until } from "../../support/system.ts";

/** An API, a worker and a sweeper, and a tenant that brings a broker on this machine. */
export type Installation = {
  server: TestServer;
  /** `POST /v1/runs`; answers the run's id. */
  run(job: Record<string, unknown>, change?: Record<string, unknown>): Promise<string>;
  stateOf(run: string): Promise<Record<string, unknown>>;
  /** Waits until the run is in that state; answers it. */
  becomes(run: string, state: string): Promise<Record<string, unknown>>;
  attemptsOf(run: string): Promise<Record<string, unknown>[]>;
  /** As whoever has a callback says how its attempt ended. */
  callBack(pass: { url: string; token: string }, verb: string, body?: unknown): Promise<Answer>;
  close(): Promise<void>;
};

const HERE = "127.0.0.0/8";
/** Tried again soon, and for minutes: brokers of these tests take their time to come back. */
const PATIENT = { maxAttempts: 100, baseMs: 50, capMs: 3000 };

export async function openInstallation(): Promise<Installation> {
  const keys = newMasterKey("test");
  const server = await startTestServer({ outboundAllow: [HERE] }, 0, 4, createMasterKeys(keys));
  const tenantId = await server.tenant("brokers");
  const owner = await server.key(tenantId, "owner");
  const node: Node = await startNode({
    roles: ["worker", "sweeper"],
    url: server.databaseUrl,
    config: {
      PUNCTUAL_SECRET: SECRET,
      PUNCTUAL_SECRET_KEYS: keys,
      PUNCTUAL_PUBLIC_URL: server.url,
      PUNCTUAL_OUTBOUND_ALLOW: HERE,
      // A sweeper that is new, or was held up, ends nothing for one lease: also no attempt whose callback did not come.
      PUNCTUAL_LEASE_TTL_MS: "10000",
      PUNCTUAL_HEARTBEAT_MS: "2500",
      PUNCTUAL_LEASE_MARGIN_MS: "2000",
    },
  });
  const get = async (path: string) => (await call(server.url, "GET", path, { key: owner })).body;
  const stateOf = (run: string) => get(`/v1/runs/${run}`);
  return {
    server,
    async run(job, change = {}) {
      const body = { job: { kind: "queue", ...job }, retry: PATIENT, ...change };
      const made = await call(server.url, "POST", "/v1/runs", { key: owner, body });
      if (made.status !== 201) throw new Error(made.text);
      return String(made.body.runId);
    },
    stateOf,
    async becomes(run, state) {
      const check = async () => (await stateOf(run)).state === state;
      await until(`${run} is ${state}`, check, 90_000, async () => [
        await stateOf(run),
        await get(`/v1/runs/${run}/attempts`),
      ]);
      return stateOf(run);
    },
    attemptsOf: async (run) => (await get(`/v1/runs/${run}/attempts`)).items as Record<string, unknown>[],
    callBack: ({ url, token }, verb, body = {}) => call(url, "POST", `/${verb}`, { key: token, body }),
    async close() {
      await node.stop();
      await server.close();
    },
  };
}
