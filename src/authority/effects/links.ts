import { linkExpiryOf } from "../../domain/effects/definition.ts";
import type { Instant } from "../../kernel/clock.ts";
import { sql, type Transaction } from "../../store/database.ts";
import type { EffectRow } from "../../store/rows/effects/effects.ts";

const PIN = sql(
  "effect_links_pin",
  `update object o set pin_until = greatest(o.pin_until, p.until)
     from (select id, max(until) as until from unnest($1::uuid[], $2::timestamptz[]) as u (id, until) group by id) p
    where o.id = p.id`,
);
const RENEW = sql(
  "effect_links_renew",
  `update effect set request = jsonb_set(request, '{facts,result,linkExpires}', to_jsonb($2::bigint)) where id = $1`,
);

/** A result stays for as long as links lead to it. The objects' rows are locked. */
export async function pinResults(
  tx: Transaction,
  effects: readonly Pick<EffectRow, "object_id" | "request">[],
): Promise<void> {
  const pins = effects.flatMap(({ object_id, request }) =>
    object_id === null ? [] : [{ objectId: object_id, until: request.facts.result!.linkExpires * 1000 }],
  );
  if (pins.length > 0) await tx.query(PIN, [pins.map((one) => one.objectId), pins.map((one) => one.until)]);
}

/** Gives an effect that is sent anew a link as young as its budget. Its row and its object's are locked. */
export async function renewLink(tx: Transaction, row: EffectRow, nowAt: Instant): Promise<void> {
  const { effect, facts } = row.request;
  if (facts.result === null) return;
  const result = { ...facts.result, linkExpires: linkExpiryOf(effect, nowAt) };
  await tx.query(RENEW, [row.id, result.linkExpires]);
  await pinResults(tx, [{ object_id: row.object_id, request: { effect, facts: { ...facts, result } } }]);
}
