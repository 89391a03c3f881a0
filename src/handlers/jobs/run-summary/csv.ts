import { stringify } from "csv-stringify/sync";
import { showId } from "../../../kernel/ids.ts";
import type { RunSummaryRow } from "../../run-reader.ts";
import { durationOf, latenessOf } from "./tally.ts";

const COLUMNS = [
  "run_id",
  "schedule_id",
  "schedule",
  "class",
  "trigger",
  "state",
  "skip_reason",
  "attempts",
  "scheduled_at",
  "due_at",
  "started_at",
  "finished_at",
  "lateness_ms",
  "duration_ms",
  "result_bytes",
  "error_code",
  "error_message",
];

/** The heading line, with the mark that makes spreadsheets read UTF-8. */
export function csvHeading(): string {
  return stringify([COLUMNS], { bom: true, record_delimiter: "windows" });
}

/**
 * RFC 4180 lines, instants in UTC. Names and messages are strangers' text: a cell that a spreadsheet would take for a
 * formula is written as text.
 */
export function csvLines(runs: readonly RunSummaryRow[]): string {
  return stringify(runs.map(cells), { record_delimiter: "windows", escape_formulas: true });
}

function cells(run: RunSummaryRow): (string | number | null | undefined)[] {
  return [
    showId("run", run.id),
    run.scheduleId === null ? null : showId("sch", run.scheduleId),
    run.scheduleName,
    run.class,
    run.trigger,
    run.state,
    run.skipReason,
    run.attempts,
    iso(run.scheduledAt),
    iso(run.dueAt),
    iso(run.startedAt),
    iso(run.finishedAt),
    whole(latenessOf(run)),
    whole(durationOf(run)),
    run.resultSize,
    run.errorCode,
    run.errorMessage,
  ];
}

const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
const whole = (ms: number | undefined) => (ms === undefined ? null : Math.round(ms));
