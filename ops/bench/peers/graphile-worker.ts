import { setTimeout as pause } from "node:timers/promises";
import { Logger, makeWorkerUtils, run, runMigrations, WorkerPreset } from "graphile-worker";
import { Client } from "pg";
import { ENQUEUE_CHUNK, enqueueInChunks } from "./enqueue.ts";
import type { Drain, PeerOptions, PeerResult } from "./peer.ts";
import { startTally } from "./tally.ts";

const WORKERS = 2;
/** Of each worker; the default of one would leave the database idle. */
const CONCURRENCY = 10;
const POOL = CONCURRENCY + 2;
const BATCHED = { localQueue: { size: 500 }, completeJobBatchDelay: 0 };

const quiet = new Logger(() => () => undefined);

async function drain(
  options: PeerOptions,
  schema: string,
  mode: Partial<GraphileConfig.WorkerOptions>,
): Promise<Drain> {
  const tally = startTally(options.jobs);
  const preset: GraphileConfig.Preset = {
    extends: [WorkerPreset],
    worker: {
      connectionString: options.postgresUrl,
      schema,
      concurrentJobs: CONCURRENCY,
      maxPoolSize: POOL,
      logger: quiet,
      ...mode,
    },
  };
  await runMigrations({ preset });
  const utils = await makeWorkerUtils({ preset });
  const observer = new Client({ connectionString: options.postgresUrl });
  await observer.connect();
  const remaining = async () =>
    (await observer.query<{ left: number }>(`select count(*)::int as left from ${schema}._private_jobs`)).rows[0]!.left;
  const taskList = { noop: (payload: unknown) => tally.ran((payload as { job: number }).job) };
  const runners = await Promise.all(
    Array.from({ length: WORKERS }, () => run({ preset, taskList, noHandleSignals: true, crontab: "" })),
  );

  const startedAt = performance.now();
  await enqueueInChunks(options.jobs, (chunk) =>
    utils.addJobs(chunk.map((job) => ({ identifier: "noop", payload: { job } }))),
  );
  await tally.everyJobRan;
  // A completion is a deletion that nothing awaits: the drain ends when the table is seen empty.
  while ((await remaining()) > 0) await pause(2);
  const seconds = (performance.now() - startedAt) / 1_000;

  await Promise.all(runners.map((runner) => runner.stop()));
  const result = tally.close(seconds, options.jobs - (await remaining()));
  await utils.release();
  await observer.end();
  return result;
}

/** graphile-worker with its defaults, one statement to take a job and one to complete it; `batched` is its local queue. */
export async function runPeer(options: PeerOptions): Promise<PeerResult> {
  const perJob = await drain(options, "graphile_worker", {});
  const batched = await drain(options, "graphile_worker_batched", BATCHED);
  return {
    name: "graphile-worker",
    ...perJob,
    settings: {
      workers: WORKERS,
      concurrency: CONCURRENCY,
      pool: POOL,
      enqueueChunk: ENQUEUE_CHUNK,
      batched: { ...batched, ...BATCHED },
    },
  };
}
