import { z } from "zod";
import { noFields } from "../../input/no-fields.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";

/** For whoever starts, restarts and routes to this process. */

export const healthzRoute = defineRoute({
  method: "get",
  path: "/healthz",
  tag: "service",
  summary: "The process lives (nothing else is asked)",
  roles: "everybody",
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "Alive",
    schema: z.strictObject({ status: z.literal("ok"), version: z.string() }),
  },
  problems: [],
  handle: (_call, context) => ({ kind: "ok", body: { status: "ok", version: context.version } }),
});

export const readyzRoute = defineRoute({
  method: "get",
  path: "/readyz",
  tag: "service",
  summary: "The process can serve",
  roles: "everybody",
  params: noFields,
  query: noFields,
  answer: { kind: "ok", description: "Ready", schema: z.strictObject({ status: z.literal("ready") }) },
  problems: ["unavailable"],
  async handle(_call, context) {
    const { ready, reasons } = await context.health.readiness();
    if (!ready) throw new Problem("unavailable", reasons.join("; "), { more: { reasons } });
    return { kind: "ok", body: { status: "ready" } };
  },
});

export const metricsRoute = defineRoute({
  method: "get",
  path: "/metrics",
  tag: "service",
  summary: "Metrics for Prometheus",
  roles: "everybody",
  params: noFields,
  query: noFields,
  answer: { kind: "ok", description: "Prometheus text format", mediaType: "text/plain" },
  problems: [],
  async handle(_call, context) {
    const { registry } = context.metrics;
    return { kind: "ok", headers: { "content-type": registry.contentType }, text: await registry.metrics() };
  },
});
