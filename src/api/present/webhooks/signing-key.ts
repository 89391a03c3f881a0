import { z } from "zod";
import { KEY_STATES, keyStateOf } from "../../../domain/api-key.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { showId } from "../../../kernel/ids.ts";
import type { SigningKeyView } from "../../../store/reads/tenants/signing-keys.ts";
import { SIGNING_KEY } from "../../examples/webhooks.ts";
import { shownInstant } from "../../input/fields.ts";
import { showInstant, showInstantOrNull } from "../instant.ts";

const fields = z.strictObject({
  keyId: z.string(),
  label: z.string(),
  state: z.enum(KEY_STATES).describe("active and expiring ones sign; expiring: it has been replaced"),
  activeUntil: shownInstant.nullable().describe("Until when it signs; null: for ever"),
  revokedAt: shownInstant.nullable(),
  createdAt: shownInstant,
  createdBy: z.string(),
  rotatedFrom: z.string().nullable(),
  replacedBy: z.string().nullable(),
});
export const signingKeySchema = fields.meta({ id: "SigningKey", example: SIGNING_KEY });

export function presentSigningKey(key: SigningKeyView, nowAt: Instant): z.output<typeof fields> {
  const { label, activeUntil, createdBy } = key;
  return {
    keyId: showId("sgk", key.id),
    label,
    state: keyStateOf({ ...key, expiresAt: activeUntil }, nowAt),
    activeUntil: showInstantOrNull(activeUntil),
    revokedAt: showInstantOrNull(key.revokedAt),
    createdAt: showInstant(key.createdAt),
    createdBy,
    rotatedFrom: key.rotatedFrom && showId("sgk", key.rotatedFrom),
    replacedBy: key.replacedBy && showId("sgk", key.replacedBy),
  };
}
