import { z } from "zod";

const name = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,99}$/);
const version = z.int().min(1).max(1_000_000).default(1);

/** A function that this installation's workers carry. */
export const functionJobSchema = z.strictObject({
  kind: z.literal("function"),
  name: name.describe("Name of a registered job, e.g. report.run-summary"),
  version,
});
export type FunctionJob = z.infer<typeof functionJobSchema>;

/** A function that the tenant's own workers carry, in whatever language: they say which they can do. */
export const remoteJobSchema = z.strictObject({
  kind: z.literal("remote"),
  name: name.describe("What the tenant's workers call it"),
  version,
});
