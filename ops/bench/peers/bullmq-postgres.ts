import { createPostgresBackend, type PostgresConnectionOptions, Queue, Worker } from "bullmq";
import { ENQUEUE_CHUNK, enqueueInChunks } from "./enqueue.ts";
import type { PeerOptions, PeerResult } from "./peer.ts";
import { startTally } from "./tally.ts";

const QUEUE = "peers";
const WORKERS = 2;
const CONCURRENCY = 20;
/** Connections of the queue and of each worker. */
const POOL = 10;

/** BullMQ on its PostgreSQL backend: the same queue and workers, no Redis. */
export async function runPeer(options: PeerOptions): Promise<PeerResult> {
  const tally = startTally(options.jobs);
  const connection: PostgresConnectionOptions = { connectionString: options.postgresUrl, max: POOL, migrate: true };
  const queue = new Queue(QUEUE, { connection }, createPostgresBackend);
  await queue.waitUntilReady();
  const workers = Array.from(
    { length: WORKERS },
    () =>
      new Worker(
        QUEUE,
        async (job) => tally.ran(job.data),
        { connection, concurrency: CONCURRENCY },
        createPostgresBackend,
      ),
  );
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));

  let completed = 0;
  const { promise: everyJobCompleted, resolve } = Promise.withResolvers<void>();
  for (const worker of workers) worker.on("completed", () => ++completed === options.jobs && resolve());

  const startedAt = performance.now();
  await enqueueInChunks(options.jobs, (chunk) => queue.addBulk(chunk.map((data) => ({ name: "noop", data }))));
  await everyJobCompleted;
  const seconds = (performance.now() - startedAt) / 1_000;

  const drain = tally.close(seconds, await queue.getCompletedCount());
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.close();
  const settings = { workers: WORKERS, concurrency: CONCURRENCY, pool: POOL, enqueueChunk: ENQUEUE_CHUNK };
  return { name: "bullmq-postgres", ...drain, settings };
}
