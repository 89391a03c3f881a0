import { randomUUID } from "node:crypto";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { createCallbackTokens } from "../../../src/domain/jobs/callback-token.ts";
import { readId, showId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { type Answer, call, SECRET, type TestServer } from "../server.ts";

/** A tenant with remote jobs: who asks for runs, and who works on them. */
export type Scene = {
  tenantId: string;
  owner: string;
  key: string;
  /** A remote run that waits; answers its id. */
  run(change?: Record<string, unknown>): Promise<string>;
  /** The run's attempt, claimed by the verb itself. */
  claim(run: string, worker?: string): Promise<Grant>;
  /** `POST /v1/worker/<verb>`, with the tenant's worker key. */
  say(verb: string, body: unknown, key?: string): Promise<Answer>;
  stateOf(run: string): Promise<Record<string, unknown>>;
};

const HINT = sql("test_hint_of_run", "select id from outbox where kind = 'run' and $1::uuid = any (runs)");
export const END_LEASE = sql(
  "test_end_lease",
  "update live_run set lease_until = clock_timestamp() - interval '1 s' where id = $1",
);
const ECHO = { kind: "remote", name: "test.echo" } as const;

export async function buildScene(server: TestServer, name: string): Promise<Scene> {
  const tenantId = await server.tenant(name);
  const [owner, key] = [await server.key(tenantId, "owner"), await server.key(tenantId, "worker")];
  return {
    tenantId,
    owner,
    key,
    async run(change = {}) {
      const made = await call(server.url, "POST", "/v1/runs", { key: owner, body: { job: ECHO, ...change } });
      if (made.status !== 201) throw new Error(made.text);
      return String(made.body.runId);
    },
    async claim(run, worker = "w1") {
      const runId = readId("run", run)!;
      const hints = (await server.db.query<{ id: bigint }>(HINT, [runId])).map(({ id }) => ({ rowId: id, epoch: 1 }));
      const slots = { short: 10, remote: 10 };
      const claim = { claimId: randomUUID(), worker, slots, hints, repeated: false };
      return (await claimRuns(server.authority, claim)).grants[0]!;
    },
    say: (verb, body, by = key) => call(server.url, "POST", `/v1/worker/${verb}`, { key: by, body }),
    stateOf: async (run) => (await call(server.url, "GET", `/v1/runs/${run}`, { key: owner })).body,
  };
}

/** What a worker says of itself in each call. */
export const attemptOf = ({ runId, attempt, fence, worker }: Grant) => ({
  runId: showId("run", runId),
  attempt,
  fence: String(fence),
  worker,
});

export const tokens = createCallbackTokens(SECRET);

export function tokenOf({ tenantId, runId, attempt, fence }: Grant, forMs = 60_000): string {
  return tokens.issue({ tenantId, runId, attempt, fence, endsAt: Date.now() + forMs });
}
