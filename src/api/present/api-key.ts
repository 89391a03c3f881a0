import { z } from "zod";
import { KEY_STATES, keyStateOf } from "../../domain/api-key.ts";
import type { Instant } from "../../kernel/clock.ts";
import { showId } from "../../kernel/ids.ts";
import type { ApiKeyView } from "../../store/reads/keys.ts";
import { ROLES } from "../context.ts";
import { API_KEY } from "../examples/identity.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";

const fields = z.strictObject({
  keyId: z.string(),
  prefix: z.string().describe("How the key begins; the rest was shown once"),
  label: z.string(),
  role: z.enum(ROLES),
  state: z.enum(KEY_STATES).describe("expiring: it has been replaced, or has a week left"),
  expiresAt: shownInstant.nullable(),
  revokedAt: shownInstant.nullable(),
  lastUsedAt: shownInstant.nullable().describe("To the minute or so; null: never"),
  createdAt: shownInstant,
  createdBy: z.string().nullable().describe("null: the program itself"),
  rotatedFrom: z.string().nullable(),
  replacedBy: z.string().nullable(),
});
export const apiKeySchema = fields.meta({ id: "ApiKey", example: API_KEY });

export function presentApiKey(key: ApiKeyView, nowAt: Instant): z.output<typeof fields> {
  const { prefix, label, role, createdBy } = key;
  return {
    keyId: showId("key", key.id),
    prefix: `pk_${prefix}`,
    label,
    role,
    state: keyStateOf(key, nowAt),
    expiresAt: showInstantOrNull(key.expiresAt),
    revokedAt: showInstantOrNull(key.revokedAt),
    lastUsedAt: showInstantOrNull(key.lastUsedAt),
    createdAt: showInstant(key.createdAt),
    createdBy,
    rotatedFrom: key.rotatedFrom && showId("key", key.rotatedFrom),
    replacedBy: key.replacedBy && showId("key", key.replacedBy),
  };
}
