/** A preview as people and programs read it, the same from the API and from the command line. Instants are epoch ms. */
import type { Instant } from "../../kernel/clock.ts";
import { windowOffset } from "../placement.ts";
import { nextAfter } from "../recurrence/next.ts";
import type { Rule } from "../recurrence/rule.ts";
import type { Label } from "../recurrence/touched/label.ts";
import { ruleWarnings } from "../recurrence/warnings.ts";
import type { ZoneSource } from "../recurrence/zone-source.ts";
import { localInstant } from "../rule-zone.ts";
import { describeTiming, type Timing } from "./describe.ts";
import type { Timetable } from "./timetable.ts";
import { type UpcomingNote, upcomingRuns } from "./upcoming.ts";

export type PreviewedRun = {
  readonly at: Instant;
  /** RFC 9557, in the rule's zone. */
  readonly local: string;
  /** From UTC, such as `-04:00`. */
  readonly offset: string;
  readonly dueAt: Instant;
  /** Where it is not `local`. */
  readonly dueLocal?: string;
  /** Of a schedule that has no id yet, and so no place in its window: it is due before this instant. */
  readonly dueBefore?: Instant;
  readonly labels: readonly Label[];
};

export type Preview = {
  readonly description: string;
  readonly warnings: readonly string[];
  readonly runs: readonly PreviewedRun[];
  readonly notes: readonly (UpcomingNote & { readonly local: string })[];
};

export function previewOf(
  definition: Timing & { readonly rule: Rule },
  timetable: Timetable,
  zones: ZoneSource,
  question: { readonly fromAt: Instant; readonly count: number },
): Preview {
  const { rule } = definition;
  const { runs, notes } = upcomingRuns(timetable, question.fromAt, question.count);
  const local = (at: Instant) => localInstant(at, rule, zones);
  let before: string | undefined;
  return {
    description: describeTiming(timetable.rule, definition),
    warnings: ruleWarnings(timetable.rule),
    runs: runs.map(({ at, dueAt, dueBefore, labels }) => {
      const text = local(at);
      const offset = /([+-]\d\d:\d\d(?::\d\d)?|Z)\[/.exec(text)?.[1] ?? "+00:00";
      const clock = before === undefined || before === offset ? [] : [clockLabel(before, offset)];
      before = offset;
      return {
        at,
        local: text,
        offset,
        dueAt,
        ...(dueAt === at ? {} : { dueLocal: local(dueAt) }),
        ...(dueBefore === undefined ? {} : { dueBefore }),
        labels: [...labels, ...windowLabels(timetable, at, dueAt, dueBefore, local), ...clock],
      };
    }),
    notes: notes.map((note) => ({ ...note, local: local(note.at) })),
  };
}

function windowLabels(
  { window, rule }: Timetable,
  at: Instant,
  dueAt: Instant,
  dueBefore: Instant | undefined,
  local: (at: Instant) => string,
): Label[] {
  if (window === undefined) return [];
  const time = (one: Instant) => /T(\d\d:\d\d(?::(?!00)\d\d)?)/.exec(local(one))![1]!;
  if (dueBefore !== undefined) {
    const text = `starts somewhere in ${time(dueAt)}–${time(dueBefore)}, always the same for this schedule`;
    return [{ kind: "window", text }];
  }
  const opensAt = dueAt - windowOffset(window.scheduleId!, window.ms, at, nextAfter(rule, at));
  return [
    { kind: "window", text: `starts at ${time(dueAt)}, its own place in the window that opens at ${time(opensAt)}` },
  ];
}

function clockLabel(before: string, offset: string): Label {
  return { kind: "clock", text: `clocks changed: ${before} → ${offset}` };
}
