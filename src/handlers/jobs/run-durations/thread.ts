import { stringify } from "csv-stringify/sync";
import type { z } from "zod";
import type { JobContext, JobResult } from "../../context.ts";
import type { RunSummaryRow } from "../../run-reader.ts";
import { resolvePeriod } from "../period.ts";
import type { runDurationsInput } from "../run-durations.ts";

type Input = z.output<typeof runDurationsInput>;
type Group = { runs: number; succeeded: number; failed: number; waitedMs: number[]; workedMs: number[] };

/** Runs in a thread: it reads, computes and writes, and the worker's other attempts do not notice. */
export async function run(ctx: JobContext, { period, by }: Input): Promise<JobResult> {
  const { fromAt, toAt } = resolvePeriod(period, ctx.run.scheduledAt);
  const groups = new Map<string, Group>();
  let runs = 0;
  for await (const page of ctx.read.runsBetween(ctx.run.tenantId, fromAt, toAt)) {
    // In a thread a loop that computes hears of the end only when it asks.
    ctx.signal.throwIfAborted();
    for (const one of page) add(groups, nameOf(one, by), one);
    runs += page.length;
    ctx.progress({ runs });
  }
  ctx.log.info({ runs, groups: groups.size }, "all runs were read");
  return { output: { name: "durations.csv", mediaType: "text/csv; charset=utf-8", bytes: lines(ctx, groups, by) } };
}

function nameOf(run: RunSummaryRow, by: Input["by"]): string {
  if (by === "class") return run.class;
  if (by === "hour") return `${new Date(run.scheduledAt).toISOString().slice(0, 13)}:00Z`;
  return run.scheduleName ?? "without a schedule";
}

function add(groups: Map<string, Group>, name: string, run: RunSummaryRow): void {
  let group = groups.get(name);
  if (group === undefined) {
    group = { runs: 0, succeeded: 0, failed: 0, waitedMs: [], workedMs: [] };
    groups.set(name, group);
  }
  group.runs++;
  if (run.state === "succeeded") group.succeeded++;
  if (run.state === "failed") group.failed++;
  if (run.startedAt === null) return;
  group.waitedMs.push(run.startedAt - run.dueAt);
  if (run.finishedAt !== null) group.workedMs.push(run.finishedAt - run.startedAt);
}

const SHARES = { p50: 0.5, p95: 0.95, p99: 0.99, max: 1 };
const COLUMNS = Object.keys(SHARES);
const HEADING = [
  "runs",
  "succeeded",
  "failed",
  ...COLUMNS.map((share) => `waited_${share}_ms`),
  ...COLUMNS.map((share) => `worked_${share}_ms`),
];

/** A group at a time, as fast as they are stored. */
async function* lines(
  ctx: JobContext,
  groups: ReadonlyMap<string, Group>,
  by: Input["by"],
): AsyncGenerator<Uint8Array> {
  yield line([by, ...HEADING], { bom: true });
  for (const [name, group] of [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    ctx.signal.throwIfAborted();
    const { runs, succeeded, failed } = group;
    yield line([name, runs, succeeded, failed, ...percentiles(group.waitedMs), ...percentiles(group.workedMs)]);
  }
}

/** Names are strangers' text: a cell that a spreadsheet would take for a formula is written as text. */
function line(cells: readonly (string | number | null)[], options = {}): Uint8Array {
  return Buffer.from(stringify([cells], { record_delimiter: "windows", escape_formulas: true, ...options }));
}

/** The least time that such a share of all does not exceed. */
function percentiles(ms: readonly number[]): (number | null)[] {
  const sorted = Float64Array.from(ms).sort();
  return Object.values(SHARES).map((share) => {
    const found = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
    return found === undefined ? null : Math.round(found);
  });
}
