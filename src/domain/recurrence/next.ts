/** The one question a scheduler asks of a rule. */
import { type CompiledCron, type CompiledRule, type CompiledSingle, FIRST_INSTANT, LAST_INSTANT } from "./compiled.ts";
import { nextByPolicy, nextFixed, nextShown } from "./walk.ts";
import { cyclesBeyond, searchEnd } from "./zone.ts";

/**
 * The first instant of the rule strictly later than `afterAt`, both in epoch milliseconds (the answer whole); null when
 * there will never be one again, which is also the answer for `afterCompletion`: its runs follow from other runs' ends.
 * Depends on nothing but its arguments, and never throws.
 */
export function nextAfter(rule: CompiledRule, afterAt: number): number | null {
  const next = nextOf(rule, Math.max(afterAt, FIRST_INSTANT - 1));
  return next <= LAST_INSTANT ? next : null;
}

/** Whether the rule names just this instant (epoch ms). */
export function isInstantOf(rule: CompiledRule, at: number): boolean {
  return nextAfter(rule, at - 1) === at;
}

function nextOf(rule: CompiledRule, afterAt: number): number {
  if (rule.kind !== "anyOf") return nextOfSingle(rule, afterAt);
  let first = Number.POSITIVE_INFINITY;
  for (const one of rule.rules) first = Math.min(first, nextOfSingle(one, afterAt));
  return first;
}

function nextOfSingle(rule: CompiledSingle, afterAt: number): number {
  switch (rule.kind) {
    case "cron":
      return nextOfCron(rule, afterAt);
    case "interval": {
      if (afterAt < rule.anchorAt) return rule.anchorAt;
      // In whole ms: with a fraction of one, the quotient could round up to the next whole number and lose an instant.
      const elapsed = Math.floor(afterAt) - rule.anchorAt;
      return rule.anchorAt + (Math.floor(elapsed / rule.everyMs) + 1) * rule.everyMs;
    }
    case "dates":
      return rule.instants.find((instant) => instant > afterAt) ?? Number.POSITIVE_INFINITY;
    case "afterCompletion":
      return Number.POSITIVE_INFINITY;
  }
}

const END_OF_TIME = Math.floor(LAST_INSTANT / 1000) + 1;

function nextOfCron(rule: CompiledCron, afterAt: number): number {
  const { memo } = rule;
  if (afterAt >= memo.after && afterAt < memo.next) return memo.next;
  if (!(afterAt < LAST_INSTANT)) return Number.POSITIVE_INFINITY;
  // Cron instants are whole seconds, so "later than afterAt" is "later than its whole second".
  const next = walk(rule, Math.floor(afterAt / 1000)) * 1000;
  memo.after = afterAt;
  memo.next = next;
  return next;
}

function walk(rule: CompiledCron, t: number): number {
  const { pattern, zone, gap, overlap } = rule;
  // Calendar and clocks repeat, so far in the future one cycle of 400 years stands for all.
  const beyond = cyclesBeyond(zone, t);
  if (beyond > 0) return walk(rule, t - beyond) + beyond;
  const until = Math.min(searchEnd(zone, t), END_OF_TIME);
  if (rule.timing === "shown") return nextShown(pattern, zone, t, until);
  if (gap === "first" && overlap === "first") return nextFixed(pattern, zone, t, until);
  return nextByPolicy(pattern, zone, t, until, rule);
}
