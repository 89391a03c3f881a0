import { z } from "zod";
import { JOB_KINDS } from "../../../domain/jobs/job.ts";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { LONGEST_NAME } from "../../../store/reads/tenants/tenants.ts";
import type { ApiContext, Role } from "../../context.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { didYouMean } from "../../input/did-you-mean.ts";
import { type FieldFault, Problem, problemOfFaults } from "../../problems/problem.ts";

/** Tenants are the platform's affair. */
export const PLATFORM: readonly Role[] = ["admin"];

export const tenantParams = z.strictObject({ tenant: z.string().max(100).describe("Tenant id, `ten_…`") });

export const tenantFields = {
  // Tokens name a tenant by either: who was called as another's id is would be taken for that one.
  name: z
    .string()
    .trim()
    .min(1)
    .max(LONGEST_NAME)
    .refine((name) => readId("ten", name) === undefined, "must not look like the id of a tenant")
    .describe("For people, and for tokens; no two tenants have the same"),
  allowedJobs: z
    .array(z.string().min(1).max(200))
    .max(1_000)
    .nullable()
    .describe(
      "Names of the job types it may use, and kinds (`http`, `container`, `queue`, `remote`); null: all, `[]`: none",
    ),
};

export function getTenantId(ref: string): Uuid {
  const id = readId("ten", ref);
  if (id === undefined) throw noSuchTenant(ref);
  return id;
}

export function nameTaken(name: string, tenantId: string): Problem {
  return new Problem("tenant-name-taken", `name: ${JSON.stringify(name)} is that of another tenant, ${tenantId}`, {
    more: { tenantId },
  });
}

/** What a tenant brings itself is allowed by its kind. */
const OWN_KINDS = JOB_KINDS.filter((kind) => kind !== "function");

/** Each name once, in order. Refuses names of no job, which would allow nothing and were meant to; one that was allowed before may stay. */
export function checkAllowedJobs(
  context: ApiContext,
  names: readonly string[] | null | undefined,
  before: readonly string[] = [],
): readonly string[] | null {
  if (names === null || names === undefined) return null;
  const known = [...new Set([...context.jobs.list().map((job) => job.name), ...OWN_KINDS])];
  const faults = names.flatMap((name, i): FieldFault[] => {
    if (known.includes(name) || before.includes(name)) return [];
    const meant = didYouMean(name, known);
    return [
      {
        field: `allowedJobs[${i}]`,
        message: "no such job is registered",
        found: JSON.stringify(name),
        allowed: known.join(", "),
        ...(meant === undefined ? {} : { didYouMean: meant }),
      },
    ];
  });
  if (faults.length > 0) throw problemOfFaults("invalid-request", faults);
  return [...new Set(names)].toSorted();
}
