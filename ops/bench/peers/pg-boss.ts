import { setTimeout as pause } from "node:timers/promises";
import { PgBoss } from "pg-boss";
import { ENQUEUE_CHUNK, enqueueInChunks } from "./enqueue.ts";
import type { Drain, PeerOptions, PeerResult } from "./peer.ts";
import { startTally, type Tally } from "./tally.ts";

const QUEUE = "peers";
const WORKERS = 2;
const PER_JOB = { batchSize: 1, concurrency: 10 };
/** More loops were slower: their batches wait for each other. */
const BATCHED = { batchSize: 100, concurrency: 1 };

interface Mode {
  readonly batchSize: number;
  /** Fetch → run → complete loops of each worker, a database connection for each. */
  readonly concurrency: number;
}

/**
 * Fetches, runs and completes jobs until all have run. Not `boss.work()`: with batches of one it sleeps at least half a
 * second after each job, which would measure its poll interval; this is the loop it offers for working by hand.
 */
async function workByHand(boss: PgBoss, tally: Tally, batchSize: number): Promise<void> {
  let over = false;
  void tally.everyJobRan.then(() => {
    over = true;
  });
  while (!over) {
    const jobs = await boss.fetch<{ job: number }>(QUEUE, { batchSize });
    if (jobs.length === 0) {
      await pause(2);
      continue;
    }
    for (const job of jobs) tally.ran(job.data.job);
    await boss.complete(
      QUEUE,
      jobs.map((job) => job.id),
    );
  }
}

async function drain(options: PeerOptions, schema: string, mode: Mode): Promise<Drain> {
  const tally = startTally(options.jobs);
  const config = { connectionString: options.postgresUrl, schema, max: mode.concurrency + 1 };
  const bosses = Array.from({ length: WORKERS }, () => new PgBoss(config));
  for (const boss of bosses) await boss.on("error", console.error).start();
  const producer = bosses[0]!;
  await producer.createQueue(QUEUE);

  const startedAt = performance.now();
  const working = bosses.flatMap((boss) =>
    Array.from({ length: mode.concurrency }, () => workByHand(boss, tally, mode.batchSize)),
  );
  await enqueueInChunks(options.jobs, (chunk) =>
    producer.insert(
      QUEUE,
      chunk.map((job) => ({ data: { job } })),
    ),
  );
  await Promise.all(working);
  const seconds = (performance.now() - startedAt) / 1_000;

  const { rows } = await producer
    .getDb()
    .executeSql(`select count(*)::int as completed from ${schema}.job where name = $1 and state = 'completed'`, [
      QUEUE,
    ]);
  for (const boss of bosses) await boss.stop({ graceful: false });
  return tally.close(seconds, (rows[0] as { completed: number }).completed);
}

/** pg-boss with batches of one; `batched` is the same with batches of a hundred. */
export async function runPeer(options: PeerOptions): Promise<PeerResult> {
  const perJob = await drain(options, "pgboss", PER_JOB);
  const batched = await drain(options, "pgboss_batched", BATCHED);
  const settings = { workers: WORKERS, enqueueChunk: ENQUEUE_CHUNK, ...PER_JOB, batched: { ...batched, ...BATCHED } };
  return { name: "pg-boss", ...perJob, settings };
}
