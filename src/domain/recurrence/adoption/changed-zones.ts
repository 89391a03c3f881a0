import type { Rule } from "../rule.ts";
import type { ZoneSource } from "../zone-source.ts";

/** Names whose rules differ between two versions of the tz database, or that only one of them has. */
export function changedZones(before: ZoneSource, after: ZoneSource): string[] {
  const names = new Set([...before.names, ...after.names]);
  return [...names].filter((name) => before.textOf(name) !== after.textOf(name));
}

/** Whether a rule may have other instants under `after` than under `before` (undefined: nobody knows what that said). */
export function isTouched(rule: Rule, before: ZoneSource | undefined, after: ZoneSource): boolean {
  return zonesOf(rule).some((name) => before?.textOf(name) !== after.textOf(name));
}

function zonesOf(rule: Rule): string[] {
  if (rule.kind === "anyOf") return rule.rules.flatMap(zonesOf);
  return "zone" in rule && rule.zone !== undefined ? [rule.zone] : [];
}
