import type { RunSummaryRow } from "../../src/handlers/run-reader.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { RUN_AT } from "./context.ts";

/** A run that succeeded 40 ms late after two seconds, unless told otherwise. */
export function runRow(scheduledAt: number, changes: Partial<RunSummaryRow> = {}): RunSummaryRow {
  return {
    id: mintId(scheduledAt, 7),
    scheduleId: mintId(0, 7).replace(/^.{18}/, "00000000-0000-8007"),
    scheduleName: "Daily report",
    class: "short",
    trigger: "schedule",
    state: "succeeded",
    skipReason: null,
    attempts: 1,
    scheduledAt,
    dueAt: scheduledAt,
    startedAt: scheduledAt + 40,
    finishedAt: scheduledAt + 2040,
    resultSize: 1200,
    errorCode: null,
    errorMessage: null,
    ...changes,
  };
}

/** `count` runs spread evenly over the `spanMs` before RUN_AT, in pages; several schedules, every outcome. */
export function* mixedRuns(count: number, spanMs: number, pageRows = 1000): Generator<RunSummaryRow[]> {
  let page: RunSummaryRow[] = [];
  for (let i = 0; i < count; i++) {
    const at = RUN_AT - spanMs + Math.floor((i / count) * spanMs);
    page.push(mixedRun(at, i));
    if (page.length === pageRows) {
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

const NAMES = ["Invoices, New York", "Nightly export", "Ping every minute", "Überweisungen 📈", "Close the books"];

function mixedRun(at: number, i: number): RunSummaryRow {
  const wave = 1 + Math.sin(i / 40);
  const lateMs = 8 + ((i * 7919) % 97) * wave + (i % 211 === 0 ? 14_000 : 0);
  const tookMs = 300 + ((i * 104_729) % 4001) * wave;
  const which = i % NAMES.length;
  const run = runRow(at, {
    scheduleId: `00000000-0000-8007-8000-00000000000${which}`,
    scheduleName: NAMES[which]!,
    startedAt: at + lateMs,
    finishedAt: at + lateMs + tookMs,
  });
  if (i % 37 === 5) {
    const busy = i % 2 === 0;
    const error = busy ? "upstream-busy" : "handler-error";
    return {
      ...run,
      state: "failed",
      attempts: 3,
      errorCode: error,
      errorMessage: busy ? "429 from the bank" : "boom",
      resultSize: null,
    };
  }
  if (i % 53 === 9) return { ...run, state: "skipped", skipReason: "overlap", startedAt: null, resultSize: null };
  if (i % 101 === 50) return { ...run, state: "canceled", resultSize: null };
  return run;
}
