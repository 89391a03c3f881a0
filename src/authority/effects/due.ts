import { EFFECT_KINDS, type EffectKind } from "../../domain/effects/states.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type DueLimits, findDueEffects, nextDueIn, readEffectGauges } from "../../store/rows/effects/due.ts";
import { findLapsedEffects } from "../../store/rows/effects/effects.ts";
import type { Authority } from "../authority.ts";

/** What may be sent, for a sender to claim: ids of now, or how long (ms) until there are any (null: nobody knows of any). */
export async function findDueSends(
  authority: Authority,
  kind: EffectKind,
  limits: DueLimits,
): Promise<{ ids: Uuid[]; nextInMs: number | null }> {
  // Almost always nothing is due, and that is said by one entry of an index.
  const nextInMs = await nextDueIn(authority.db, kind);
  return { ids: nextInMs === 0 ? await findDueEffects(authority.db, kind, limits) : [], nextInMs };
}

/** Effects whose senders were not heard of; lapseEffects decides under their locks. */
export function findLapsedSends(authority: Authority, limit: number): Promise<Uuid[]> {
  return findLapsedEffects(authority.db, limit);
}

/** How late effects are and how many wait for a person, for every kind. */
export function readEffectBacklog(authority: Authority) {
  return readEffectGauges(authority.db, EFFECT_KINDS);
}
