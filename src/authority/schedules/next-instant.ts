import type { Definition } from "../../domain/definition.ts";
import { bounded, offsetOf } from "../../domain/materialization.ts";
import { followingAt } from "../../domain/planning/told-ends.ts";
import type { RuleFault } from "../../domain/recurrence/compile.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { readFloor } from "../../store/rows/floor.ts";
import type { Authority } from "../authority.ts";

/** The first instant a definition is due after `fromAt` (null: never again), or why it cannot be accepted. */
export async function firstInstant(
  authority: Authority,
  tx: Transaction,
  definition: Definition,
  fromAt: Instant,
): Promise<{ ok: true; nextRunAt: Instant | null } | { ok: false; fault: RuleFault }> {
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) return compiled;
  if (definition.rule.kind === "afterCompletion") {
    // The first run waits for nobody: at once, or at startAt.
    const following = followingAt({ ...definition, rule: { ...definition.rule, delayMs: 1 } }, fromAt, null);
    return { ok: true, nextRunAt: following.kind === "at" ? following.nextRunAt : null };
  }
  const next = bounded((at) => nextAfter(compiled.rule, at), definition);
  const nextRunAt = next(Math.floor(fromAt));
  if (nextRunAt === null && definition.rule.kind === "once") {
    const onlyAt = next(Number.NEGATIVE_INFINITY) ?? next(0);
    if (onlyAt !== null && definition.runIfPast) {
      const floorAt = await readFloor(tx);
      if (onlyAt >= floorAt) return { ok: true, nextRunAt: onlyAt };
      const message = "lies further back than history is kept";
      const allowed = `${new Date(floorAt).toISOString()} or later`;
      return { ok: false, fault: { field: "at", found: definition.rule.at, message, allowed } };
    }
    if (onlyAt !== null) {
      const allowed = "an instant in the future, or runIfPast: true";
      return { ok: false, fault: { field: "at", found: definition.rule.at, message: "lies in the past", allowed } };
    }
  }
  return { ok: true, nextRunAt };
}

/** When a nominal instant of a schedule is due: after its share of the window, if it has one. */
export function dueAtOf(
  authority: Authority,
  scheduleId: Uuid,
  definition: Definition,
  nominalAt: Instant | null,
): Instant | null {
  if (nominalAt === null) return null;
  const compiled = authority.revisions.rule(definition);
  // A rule that cannot be computed has no next instant: nothing but the window's own length bounds the share.
  const next = (at: Instant) => (compiled.ok ? nextAfter(compiled.rule, at) : null);
  return nominalAt + (offsetOf(scheduleId, definition, next)?.(nominalAt) ?? 0);
}
