import { z } from "zod";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { type ApiKeyView, readApiKey } from "../../../store/reads/keys.ts";
import { authorize } from "../../auth.ts";
import type { ApiContext, Caller, Role } from "../../context.ts";
import { Problem } from "../../problems/problem.ts";

/** Who looks after the keys of a tenant. */
export const KEEPERS: readonly Role[] = ["admin", "owner"];

export const keyParams = z.strictObject({ key: z.string().max(100).describe("Key id, `key_…`; never the key itself") });

export function noSuchKey(ref: string): Problem {
  return new Problem("not-found", `There is no API key ${JSON.stringify(ref.slice(0, 100))}`);
}

export function getKeyId(ref: string): Uuid {
  const id = readId("key", ref);
  if (id === undefined) throw noSuchKey(ref.startsWith("pk_") ? "pk_…" : ref);
  return id;
}

/** The key, if this caller may change it. Throws `not-found` and `forbidden`. */
export async function keyToChange(context: ApiContext, caller: Caller, ref: string): Promise<ApiKeyView> {
  const key = await readApiKey(context.db, caller.tenantId, getKeyId(ref));
  if (key === undefined) throw noSuchKey(ref);
  authorizeFor(caller, key.role);
  return key;
}

/** Keys of the platform's admins are the admins' own affair, whosever tenant they stand in. */
export function authorizeFor(caller: Caller, role: Role): void {
  authorize(caller, role === "admin" ? ["admin"] : KEEPERS);
}
