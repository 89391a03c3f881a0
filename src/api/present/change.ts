import { z } from "zod";
import type { changedFields } from "../../domain/preview/field-diff.ts";

/** One field that differs. */
const fieldChangeSchema = z.strictObject({
  field: z.string().describe("Its path, such as rule.expression"),
  from: z.unknown().optional().meta({ override: {}, description: "What it was; missing where the field is new" }),
  to: z.unknown().optional().meta({ override: {}, description: "What it is; missing where the field is gone" }),
});

export const fieldChanges = {
  fields: z.array(fieldChangeSchema).describe("At most 200"),
  hasMoreFields: z.boolean(),
};

export function presentFields({ changes, hasMore }: ReturnType<typeof changedFields>) {
  return { fields: changes.map((one) => ({ ...one })), hasMoreFields: hasMore };
}
