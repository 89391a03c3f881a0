/** What a schedule's notes say of a pause that a failing run brought about; `run` as people see it (`run_…`). */
export function pauseNote(run: string): string {
  return `Paused because ${run} failed (pauseOnFailure)`;
}

/** Notes after a resume: what was said of the pause is over, what people wrote stays. */
export function withoutPauseNote(notes: string | null): string | null {
  return notes !== null && /^Paused because run_\w+ failed \(pauseOnFailure\)$/.test(notes) ? null : notes;
}
