import { z } from "zod";
import { ROLES } from "../../context.ts";
import { isJobAllowed } from "../../identity/tenant-bounds.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";

export const listJobTypesRoute = defineRoute({
  method: "get",
  path: "/v1/job-types",
  tag: "service",
  summary: "List the registered jobs and what they take",
  roles: ROLES,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "All jobs a schedule of the tenant may name",
    schema: z.strictObject({
      items: z.array(
        z.strictObject({
          kind: z.literal("function"),
          name: z.string(),
          version: z.int(),
          description: z.string(),
          input: z.looseObject({}).describe("JSON Schema of the payload"),
        }),
      ),
    }),
  },
  problems: [],
  handle: (_call, context, caller) => ({
    kind: "ok",
    body: { items: context.jobs.list().filter((job) => isJobAllowed(caller, job)) },
  }),
});
