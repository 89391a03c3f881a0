import type { Instant } from "../kernel/clock.ts";
import type { Definition } from "./definition.ts";
import { LAST_NOMINAL } from "./recurrence/compiled.ts";

/** Between which instants a schedule makes runs: from `startAt` (inclusive) to before `endAt`. */
export function boundsOf({ startAt, endAt }: Pick<Definition, "startAt" | "endAt">): {
  startAt: Instant;
  endAt: Instant;
} {
  return {
    startAt: startAt === undefined ? Number.NEGATIVE_INFINITY : Date.parse(startAt),
    endAt: Math.min(endAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(endAt), LAST_NOMINAL + 1),
  };
}
