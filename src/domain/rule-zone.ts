import type { Rule } from "./recurrence/rule.ts";

/** The zone whose clock a rule reads, or undefined for rules of elapsed time. */
export function zoneOf(rule: Rule): string | undefined {
  if (rule.kind === "cron") return rule.zone;
  if (rule.kind === "once" && "zone" in rule) return rule.zone;
  return undefined;
}
