import { randomUUID } from "node:crypto";
import { type Client, createClient } from "../../../client/client.ts";
import type { Run } from "../../../client/types.ts";
import { systemClock } from "../../../kernel/clock.ts";

/** What checks have: an API, somebody who asks for runs, and the key of a worker. */
export type Stage = {
  url: string;
  operator: Client;
  operatorKey: string;
  workerKey: string;
  /** The key of a worker of another tenant, where one was given. */
  otherKey: string | undefined;
  /** A raw call of a worker: the answer, whatever it is. `token`: in place of the worker's key; null: none. */
  say(verb: string, body: unknown, token?: string | null): Promise<Said>;
  /** Makes a run of that job; answers its id. */
  run(job: string, draft?: Record<string, unknown>): Promise<string>;
  /** The run, once `until` says so; throws where it does not for too long. */
  runOnce(runId: string, until: (run: Run) => boolean, withinMs: number, what: string): Promise<Run>;
};

export type Said = { status: number; body: Record<string, unknown> };

export async function withStage<T>(
  target: { url: string; key: string; tenant?: string },
  otherKey: string | undefined,
  work: (stage: Stage) => Promise<T>,
): Promise<T> {
  const sleep = (ms: number) => systemClock.sleep(ms);
  const operator = createClient({ ...target, sleep });
  const made = await operator.apiKeys.create({ label: "conformance", role: "worker", expiresInDays: 1 });
  const url = target.url.replace(/\/+$/, "");
  const runs: string[] = [];
  const stage: Stage = {
    url,
    operator,
    operatorKey: target.key,
    workerKey: made.key,
    otherKey,
    async say(verb, body, token = made.key) {
      const answer = await fetch(`${url}/v1/worker/${verb}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    },
    async run(job, draft = {}) {
      const [name = "", version = "1"] = job.split("@");
      const { payload, ...more } = draft;
      const payloadJson = payload === undefined ? {} : { payloadJson: JSON.stringify(payload) };
      const remote = { kind: "remote", name, version: Number(version) };
      const { runId } = await operator.runs.create({ job: remote, ...payloadJson, ...more });
      runs.push(runId);
      return runId;
    },
    async runOnce(runId, until, withinMs, what) {
      const endsMs = systemClock.monotonic() + withinMs;
      for (;;) {
        const run = await operator.runs.get(runId);
        if (until(run)) return run;
        if (systemClock.monotonic() >= endsMs) {
          const { state, attempt, error } = run;
          throw new Error(`${what}: not within ${withinMs} ms; found ${JSON.stringify({ state, attempt, error })}`);
        }
        await sleep(100);
      }
    },
  };
  try {
    return await work(stage);
  } finally {
    // Most have ended; nobody is to wait for the others.
    for (const run of runs) await operator.runs.cancel(run).catch(() => undefined);
    // What failed did so on purpose: nobody has to decide about it. Those without a dead letter have none to dismiss.
    for (const run of runs) await operator.deadLetters.dismiss(run, "punctual conformance").catch(() => undefined);
    await operator.apiKeys.revoke(made.apiKey.keyId);
  }
}

let jobs = 0;
/** A job that nobody else has heard of. */
export const freshJob = () => `conformance.${randomUUID().slice(0, 8)}-${++jobs}@1`;
