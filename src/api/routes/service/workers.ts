import { z } from "zod";
import { listWorkers } from "../../../store/reads/workers/workers.ts";
import { READERS } from "../../context.ts";
import { shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { defineRoute } from "../../route.ts";

export const listWorkersRoute = defineRoute({
  method: "get",
  path: "/v1/workers",
  tag: "workers",
  summary: "List the workers that are alive",
  description: "The installation's, and the tenant's own. Who has not been heard of for 45 seconds is not there.",
  roles: READERS,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The tenant's own workers first, by name; at most 1,000",
    schema: z.strictObject({
      items: z.array(
        z.strictObject({
          name: z.string(),
          kind: z.enum(["own", "installation"]).describe("The tenant's own, or the installation's"),
          slots: z.record(z.string(), z.int()).describe("Runs at once, per class"),
          jobs: z.array(z.string()).describe("Remote jobs that it can do; empty for the installation's"),
          version: z.string(),
          startedAt: shownInstant.describe("When it was first heard of"),
          seenAt: shownInstant,
        }),
      ),
    }),
  },
  problems: [],
  async handle(_call, context, { tenantId }) {
    const workers = await listWorkers(context.db, tenantId);
    return {
      kind: "ok",
      body: {
        items: workers.map(({ name, isRemote, slots, jobs, concurrency, version, startedAt, seenAt }) => ({
          name,
          kind: isRemote ? "own" : "installation",
          slots: isRemote
            ? { remote: concurrency ?? 1 }
            : Object.fromEntries(Object.entries(slots).map(([class_, one]) => [class_, one.slots])),
          jobs: jobs ?? [],
          version,
          startedAt: showInstant(startedAt),
          seenAt: showInstant(seenAt),
        })),
      },
    };
  },
});
