import type { Attempt, Run } from "../../../client/types.ts";
import { showEffectState } from "../effects/effects.ts";
import { printFields, printLine, printTable } from "../print.ts";
import { showJobFields } from "../schedules/job-fields.ts";
import { showBytes, showJob, showLateness, showScheduleInFull, showUtc } from "../words.ts";
import { printAttempts } from "./print-attempts.ts";

/** `awaits`: the worker it waits for, where none is heard of. */
export function printRun(run: Run, attempts: readonly Attempt[], awaits: string | null): void {
  const running = attempts.find((one) => one.endedAt === null);
  printFields({
    run: run.runId,
    schedule: showScheduleInFull(run),
    state: run.state,
    "skipped for": run.skipReason,
    "held by": run.heldBy === "none" ? null : run.heldBy,
    "waits for": awaits,
    job: showJob(run.job),
    ...showJobFields(run.job),
    class: run.class,
    trigger: run.trigger,
    payload: JSON.stringify(run.payload),
    scheduled: showUtc(run.scheduledAt),
    due: showUtc(run.dueAt),
    started: showUtc(run.startedAt),
    late: showLateness(run),
    finished: showUtc(run.finishedAt),
    detached: run.callbackDueAt && `with somebody else, callback due by ${showUtc(run.callbackDueAt)}`,
    progress: showProgress(running?.progress),
    cancellation: run.cancellationRequested ? "requested" : null,
    error: run.error && `${run.error.code}: ${run.error.message}`,
    result: run.result && `${showBytes(run.result.size)} ${run.result.mediaType ?? ""}`,
  });
  printAttempts(attempts);
  printEffects(run.effects);
}

/** As the job said it. */
function showProgress(progress: unknown): string | null {
  if (progress === null || progress === undefined) return null;
  return typeof progress === "string" ? progress : JSON.stringify(progress);
}

function printEffects(effects: Run["effects"]): void {
  if (effects.length === 0) return;
  printLine("");
  printTable(
    ["EFFECT", "NAME", "KIND", "STATE", "ATTEMPTS", "MESSAGE"],
    effects.map((one) => [
      one.effectId,
      one.name,
      one.kind,
      showEffectState(one),
      String(one.attempts),
      one.message ?? "",
    ]),
  );
}
