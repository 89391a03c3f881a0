import { readId, type Uuid } from "../kernel/ids.ts";
import { findKeyLabels } from "../store/reads/keys.ts";
import type { ApiContext } from "./context.ts";

/** Of an actor, what people call it; null where it is no API key of the tenant. */
export type LabelOf = (actor: string | null) => string | null;

/** The labels of those among these actors that are API keys of the tenant. */
export async function labelsOf(
  { db }: Pick<ApiContext, "db">,
  tenantId: Uuid,
  actors: readonly (string | null)[],
): Promise<LabelOf> {
  const idOf = (actor: string | null) => (actor === null ? undefined : readId("key", actor));
  const ids = [...new Set(actors.flatMap((actor) => idOf(actor) ?? []))];
  const labels = ids.length === 0 ? new Map<Uuid, string>() : await findKeyLabels(db, tenantId, ids);
  return (actor) => labels.get(idOf(actor) ?? "") ?? null;
}
