import { z } from "zod";
import { AUDIT_WALK_ROWS, listAudit } from "../../../store/reads/audit.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { labelsOf } from "../../actors.ts";
import { afterSchema, limitSchema, shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { auditEventSchema, presentAuditEvent } from "../../present/audit.ts";
import { showInstant } from "../../present/instant.ts";
import { defineRoute } from "../../route.ts";
import { AUDITORS, auditFilters, storedFilters } from "./filters.ts";

export const listAuditRoute = defineRoute({
  method: "get",
  path: "/v1/audit-events",
  tag: "audit",
  summary: "List who changed what, newest first",
  roles: AUDITORS,
  params: noFields,
  query: auditFilters.extend({ limit: limitSchema, after: afterSchema }),
  answer: {
    kind: "ok",
    description: `A page. It looks at ${AUDIT_WALK_ROWS.toLocaleString("en")} events at most: with a filter that few match it may be short, or empty, and still have a \`next\``,
    schema: z.strictObject({
      items: z.array(auditEventSchema),
      next: z.string().nullable().describe("null: this was the last page; no other sign says so"),
      watermark: shownInstant.describe(
        "Events are complete up to here; later ones are not shown, on any page of this walk",
      ),
      source: z.literal("authority"),
    }),
  },
  problems: ["invalid-cursor", "busy"],
  async handle({ query }, context, caller) {
    const { limit, after, ...filters } = query;
    const { tenantId } = caller;
    const list = JSON.stringify(["audit", tenantId, Object.entries(filters).toSorted()]);
    const position = after === undefined ? undefined : context.cursors.read(list, after);
    const boundAt = position === undefined ? await readWatermark(context.db) : Number(position[0]) / 1000;
    const { items, next } = await listAudit(context.db, tenantId, "newest", {
      ...storedFilters(filters),
      ...(position && { after: { at: Number(position[1]) / 1000, id: String(position[2]) } }),
      boundAt,
      limit,
    });
    const labelOf = await labelsOf(
      context,
      tenantId,
      items.map((one) => one.actor),
    );
    return {
      kind: "ok",
      body: {
        items: items.map((one) => presentAuditEvent(one, labelOf)),
        next:
          next === undefined
            ? null
            : context.cursors.write(list, [Math.round(boundAt * 1000), Math.round(next.at * 1000), String(next.id)]),
        watermark: showInstant(boundAt),
        source: "authority",
      },
    };
  },
});
