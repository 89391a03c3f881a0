import { showId, type Uuid } from "../../../src/kernel/ids.ts";
import type { Reference } from "./reference.ts";
import type { Effect, StoredObject } from "./terms.ts";

/** What the tables say of objects and effects, in the words of the reference. */
export type OutcomeFacts = { objects: Fact[]; effects: (Fact & { action_id: string })[] };
type Fact = Record<string, string | null> & { id: Uuid };

const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint::text`;
export const OBJECTS = `
  select id, run_id, fence::text as fence, name, state, sha256, ${us("granted_until")} as granted_until,
         ${us("referenced_at")} as referenced_at, ${us("pin_until")} as pin_until, ${us("deleted_at")} as deleted_at,
         ${us("clean_at")} as clean_at, clean_tries::text as clean_tries
    from object where tenant_id = any($1::uuid[])`;
export const EFFECTS = `
  select id, action_id, run_id, name, kind, object_id, state, resolution, budget_attempts::text as spent,
         ${us("budget_from")} as budget_from, ${us("first_sent_at")} as first_sent_at, ${us("lease_until")} as lease_until,
         case when state = 'pending' then ${us("next_attempt_at")} end as due_at,
         case when state in ('pending', 'uncertain') then in_doubt::text end as in_doubt, doubted_before::text as doubted_before,
         request -> 'facts' -> 'result' ->> 'sha256' as says,
         (select string_agg(concat_ws(' ', a.fence, coalesce(a.outcome, 'open')), ', ' order by a.n)
            from effect_attempt a where a.effect_id = effect.id) as sends
    from effect where tenant_id = any($1::uuid[])`;

/** Throws unless the facts are the reference's. Learns the ids of effects that were made. */
export function toldOutcomes(reference: Reference, facts: OutcomeFacts): void {
  const rule = new Map(facts.effects.map((fact) => [fact.action_id, fact.id]));
  // An action is called the same for ever: by what it does and by its run.
  for (const effect of reference.effects) effect.id ??= rule.get(`${effect.name}-${showId("run", effect.run.id!)}`);
  const kept = reference.objects.filter((one) => one.state !== "forgotten");
  compareAll("object", facts.objects, kept, objectSaid);
  compareAll("effect", facts.effects, reference.effects, effectSaid);
}

function compareAll<One extends { id: Uuid | undefined }>(
  what: string,
  facts: readonly Fact[],
  all: readonly One[],
  said: (one: One) => Record<string, string | null>,
): void {
  const found = new Map(facts.map((fact) => [fact.id, fact]));
  for (const one of all) {
    const fact = found.get(one.id!);
    if (fact === undefined) throw new Error(`there is no ${what}, and should be: ${JSON.stringify(said(one))}`);
    found.delete(one.id!);
    const differing = Object.entries(said(one)).filter(([name, value]) => (fact[name] ?? null) !== value);
    if (differing.length > 0) {
      const each = differing.map(([name, value]) => `${name} is ${fact[name]} and should be ${value}`);
      throw new Error(`${what} ${one.id}: ${each.join("; ")}`);
    }
  }
  if (found.size > 0) throw new Error(`nobody asked for the ${what} ${JSON.stringify([...found.values()][0])}`);
}

const text = (value: unknown) => (value === undefined ? null : String(value));

function objectSaid(object: StoredObject): Record<string, string | null> {
  return {
    run_id: object.run.id!,
    fence: text(object.fence),
    name: object.name,
    state: object.state,
    sha256: text(object.sha256),
    granted_until: text(object.grantedUntil),
    referenced_at: text(object.referencedAt),
    pin_until: text(object.pinUntil),
    deleted_at: text(object.deletedAt),
    clean_at: text(object.cleanAt),
    clean_tries: text(object.cleanTries),
  };
}

function effectSaid(effect: Effect): Record<string, string | null> {
  const isOpen = effect.state === "pending" || effect.state === "uncertain";
  const sends = effect.sends.map((one) => `${one.fence} ${one.outcome ?? "open"}`);
  return {
    run_id: effect.run.id!,
    name: effect.name,
    object_id: text(effect.object?.id),
    state: effect.state,
    resolution: text(effect.resolution),
    spent: text(effect.spent),
    budget_from: text(effect.budgetFrom),
    first_sent_at: text(effect.firstSentAt),
    lease_until: effect.state === "sending" ? text(effect.leaseUntil) : null,
    due_at: effect.state === "pending" ? text(effect.dueAt) : null,
    doubted_before: text(effect.doubtedBefore),
    in_doubt: isOpen ? text(effect.inDoubt) : null,
    says: text(effect.object?.sha256),
    sends: sends.length === 0 ? null : sends.join(", "),
  };
}
