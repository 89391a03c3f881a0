import { expect } from "vitest";
import type { WorkerJob } from "../../src/client/worker/job.ts";
import { PunctualWorker, type PunctualWorkerOptions } from "../../src/client/worker/punctual-worker.ts";
import { readId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import type { TestServer } from "../api/server.ts";
import type { Scene } from "../api/workers/scene.ts";

const ATTEMPTS = sql(
  "test_attempts_of",
  "select n, outcome, error_code, progress from attempt where run_id = $1 order by n",
);

export type Crew = ReturnType<typeof crewOf>;

/** A tenant's own workers, one for each job. */
export function crewOf(server: TestServer, scene: Scene) {
  const workers: PunctualWorker[] = [];
  let names = 0;
  return {
    start(job: WorkerJob, options: Partial<PunctualWorkerOptions> = {}) {
      const name = `test.client-${++names}`;
      const worker = new PunctualWorker({
        url: server.url,
        key: scene.key,
        jobs: { [`${name}@1`]: job },
        waitMs: 1_000,
        graceMs: 0,
        ...options,
      });
      workers.push(worker);
      worker.start();
      return { worker, run: (more = {}) => scene.run({ job: { kind: "remote", name }, ...more }) };
    },
    stop: () => Promise.all(workers.splice(0).map((worker) => worker.stop())),
    ended: (run: string, state: string) =>
      expect.poll(async () => (await scene.stateOf(run)).state, { timeout: 60_000, interval: 50 }).toBe(state),
    attemptsOf: (run: string) => server.db.query(ATTEMPTS, [readId("run", run)]),
  };
}
