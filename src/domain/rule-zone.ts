import { toLocal } from "./recurrence/local.ts";
import type { Rule } from "./recurrence/rule.ts";
import type { ZoneSource } from "./recurrence/zone-source.ts";

/** The zone whose clock a rule reads (the first, where several are joined); undefined for rules of elapsed time. */
export function zoneOf(rule: Rule): string | undefined {
  if (rule.kind === "anyOf") return rule.rules.map(zoneOf).find((zone) => zone !== undefined);
  return "zone" in rule ? rule.zone : undefined;
}

/** An instant (epoch ms) of the rule in RFC 9557, in the zone that people think in when they read its instants. */
export function localInstant(at: number, rule: Rule, zones: ZoneSource): string {
  const zone = readersZone(rule);
  // New tz data may have lost the zone of a rule that it accepted once.
  return toLocal(zones.findZone(zone) === undefined ? "UTC" : zone, at, zones);
}

function readersZone(rule: Rule): string {
  if (rule.kind === "cron") return rule.zone;
  if (rule.kind === "once" || rule.kind === "dates") return rule.zone ?? "UTC";
  if (rule.kind === "anyOf") return rule.rules.map(readersZone).find((zone) => zone !== "UTC") ?? "UTC";
  return "UTC";
}
