import type { JobContext, JobResult } from "../../src/handlers/context.ts";

type Input = { price: number; volatility: number; paths: number };

export async function run(ctx: JobContext, { price, volatility, paths }: Input): Promise<JobResult> {
  const random = randomFrom(ctx.run.scheduledAt);
  const ends = new Float64Array(paths);
  for (let path = 0; path < paths; path++) {
    if (path % 10_000 === 0) {
      ctx.signal.throwIfAborted();
      ctx.progress({ paths: path });
    }
    let end = price;
    for (let day = 0; day < 250; day++) end *= 1 + volatility * (random() - 0.5);
    ends[path] = end;
  }
  ends.sort();
  const at = (share: number) => ends[Math.floor(share * (paths - 1))]!.toFixed(2);
  const bytes = Buffer.from(`p05,p50,p95\n${at(0.05)},${at(0.5)},${at(0.95)}\n`);
  return { output: { name: "prices.csv", mediaType: "text/csv", bytes } };
}

/** The same numbers in every attempt of a run. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
