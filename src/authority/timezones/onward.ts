import type { NextAfter } from "../../domain/planning/look-back.ts";
import { continueFrom } from "../../domain/recurrence/adoption/continuation.ts";
import { readLocal, standOf } from "../../domain/recurrence/adoption/stand.ts";
import type { CompiledRule } from "../../domain/recurrence/compile.ts";
import { toLocal } from "../../domain/recurrence/local.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { zoneOf } from "../../domain/rule-zone.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { CursorRow } from "../../store/rows/cursors.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";

/** Owed appointments follow the last nominal instant within milliseconds; rules have at least a second between theirs. */
const OWED_WITHIN_MS = 1000;

/**
 * The instants of a rule from where its cursor stands, under the tz data it was planned by. Almost always `nextAfter`;
 * a change of tz data may have left appointments owed or served (recurrence/adoption/continuation.ts).
 */
export function onwardFrom(cursor: CursorRow, rule: CompiledRule): NextAfter {
  const plain = (at: Instant) => nextAfter(rule, at);
  if (cursor.last_nominal_local === null || cursor.next_run_at === null) return plain;
  const owes = cursor.next_run_at - standAt(cursor) < OWED_WITHIN_MS;
  return owes || rule.kind === "anyOf" ? continueUnder(cursor, rule, undefined) : plain;
}

/** The same under other data: `before` is what the cursor was planned by, where that is known. */
export function continueUnder(cursor: CursorRow, rule: CompiledRule, before: ZoneSource | undefined): NextAfter {
  return continueFrom(rule, standOf(standAt(cursor), cursor.last_nominal_local, before));
}

/** Nothing may be due at this instant or before: the last that was settled, else where the chain began. */
export function standAt({ last_nominal_at, chain_started_at, next_run_at }: CursorRow): Instant {
  if (last_nominal_at !== null) return last_nominal_at;
  // A rule `once` in the past that runs all the same began before its chain.
  return Math.min(Math.floor(chain_started_at), (next_run_at ?? Number.POSITIVE_INFINITY) - 1);
}

/**
 * The local time to remember of a schedule that stands at `at` now: the highest it has served. Rules of several zones and
 * kinds can reach an instant at which a clock shows less than it did.
 */
export function localToRemember(authority: Authority, cursor: CursorRow, at: Instant | null): string | null {
  const { definition } = authority.revisions.get(revisionOf(cursor));
  const zone = zoneOf(definition.rule);
  // A zone that the tz data has lost shows no local time.
  if (at === null || zone === undefined || authority.zones.findZone(zone) === undefined) return null;
  const local = toLocal(zone, at, authority.zones);
  const before = cursor.last_nominal_local;
  if (definition.rule.kind !== "anyOf" || before === null) return local;
  return readLocal(before)!.wall > readLocal(local)!.wall ? before : local;
}
