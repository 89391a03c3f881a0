import { z } from "zod";
import type { AuditPage } from "../../../store/reads/audit.ts";
import type { Role } from "../../context.ts";
import { instantSchema } from "../../input/fields.ts";
import { storedSubject } from "../../present/audit.ts";

/** Who may look: events name people and where they were. */
export const AUDITORS: readonly Role[] = ["admin", "owner"];

export const auditFilters = z.strictObject({
  actor: z.string().min(1).max(300).optional().describe("Only what this one did, such as `key_…`"),
  action: z.string().min(1).max(100).optional().describe("Only this, such as `schedule.revise`"),
  subject: z.string().min(1).max(300).optional().describe("Only what was done to this: an id, or a name"),
  requestId: z.string().min(1).max(128).optional().describe("Only what this call did"),
  from: instantSchema.optional().describe("From here on (inclusive)"),
  to: instantSchema.optional().describe("Before this (exclusive)"),
});

type Filters = Pick<AuditPage, "actor" | "action" | "subject" | "requestId" | "from" | "to">;

export function storedFilters({ subject, ...rest }: z.output<typeof auditFilters>): Filters {
  return { ...rest, ...(subject === undefined ? {} : { subject: storedSubject(subject) }) } as Filters;
}
