import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { ENQUEUE_CHUNK, enqueueInChunks } from "./enqueue.ts";
import type { PeerOptions, PeerResult } from "./peer.ts";
import { startTally } from "./tally.ts";

const QUEUE = "peers";
const WORKERS = 2;
/** Of each worker; 50 and 300 were slower. */
const CONCURRENCY = 100;

/** BullMQ alone, on Redis: no other record of the jobs than Redis' own. */
export async function runPeer(options: PeerOptions): Promise<PeerResult> {
  if (options.redisUrl === undefined) throw new Error("the BullMQ peer needs redisUrl");
  const redisUrl = options.redisUrl;
  const tally = startTally(options.jobs);
  const connect = () => new Redis(redisUrl, { maxRetriesPerRequest: null });
  const connections = [connect()];
  const queue = new Queue<number>(QUEUE, { connection: connections[0]! });
  const workers = Array.from({ length: WORKERS }, () => {
    const connection = connect();
    connections.push(connection);
    return new Worker<number>(QUEUE, async (job) => tally.ran(job.data), { connection, concurrency: CONCURRENCY });
  });
  await Promise.all([queue.waitUntilReady(), ...workers.map((worker) => worker.waitUntilReady())]);

  let completed = 0;
  const { promise: everyJobCompleted, resolve } = Promise.withResolvers<void>();
  for (const worker of workers) worker.on("completed", () => ++completed === options.jobs && resolve());

  const startedAt = performance.now();
  await enqueueInChunks(options.jobs, (chunk) => queue.addBulk(chunk.map((data) => ({ name: "noop", data }))));
  await everyJobCompleted;
  const seconds = (performance.now() - startedAt) / 1_000;

  const drain = tally.close(seconds, await queue.getCompletedCount());
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.obliterate({ force: true });
  await queue.close();
  for (const connection of connections) connection.disconnect();
  return {
    name: "bullmq",
    ...drain,
    settings: { workers: WORKERS, concurrency: CONCURRENCY, enqueueChunk: ENQUEUE_CHUNK },
  };
}
