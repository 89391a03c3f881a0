import { z } from "zod";
import { readBacklog, readWatermark } from "../../../store/reads/status.ts";
import { ROLES } from "../../context.ts";
import { shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { defineRoute } from "../../route.ts";

const HEALTH = ["ok", "degraded", "down"] as const;

export const getStatusRoute = defineRoute({
  method: "get",
  path: "/v1/status",
  tag: "service",
  summary: "Say how the system is doing, part by part",
  roles: ROLES,
  sees: "every-tenant",
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The worst part's state, each part, and how far behind the machinery is",
    schema: z.strictObject({
      status: z.enum(HEALTH),
      components: z.array(
        z.strictObject({ name: z.string(), status: z.enum(HEALTH), since: shownInstant, effect: z.string() }),
      ),
      scanLagMs: z.int().describe("How late the due schedule furthest behind is"),
      hintLagMs: z.int().describe("How long the oldest work has waited for its hint"),
      watermark: shownInstant.describe("History is complete up to here"),
      version: z.string(),
      tzVersion: z.string(),
      asOf: shownInstant,
    }),
  },
  problems: [],
  async handle(_call, context) {
    const components = await context.health.components();
    const [backlog, watermark] = await Promise.all([readBacklog(context.db), readWatermark(context.db)]);
    const lag = (since: number | null) => (since === null ? 0 : Math.max(0, Math.round(backlog.now - since)));
    return {
      kind: "ok",
      body: {
        status: HEALTH[Math.max(0, ...components.map((component) => HEALTH.indexOf(component.status)))],
        components: components.map((component) => ({ ...component, since: showInstant(component.since) })),
        scanLagMs: lag(backlog.oldestDueAt),
        hintLagMs: lag(backlog.oldestUnpublishedAt),
        watermark: showInstant(watermark),
        version: context.version,
        tzVersion: context.zones.version,
        asOf: showInstant(backlog.now),
      },
    };
  },
});
