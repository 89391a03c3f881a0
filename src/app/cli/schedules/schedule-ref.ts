import { UsageError } from "../usage.ts";

/** What names a schedule, or a refusal that says how a key is written: a bare one would just not be found. */
export function readScheduleRef(text: string): string {
  if (/^(sch_|key:)./.test(text)) return text;
  throw new UsageError(
    `schedule: found "${text}"; allowed: an id (sch_…) or its own key, written key:… (did you mean "key:${text}"?)`,
  );
}
