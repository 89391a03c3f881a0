import { z } from "zod";
import { definitionSchema, PAYLOAD_LIMIT_BYTES, type Payload } from "../../domain/definition.ts";

/** Fields that several routes take. */

const nameSchema = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text.trim() !== "", "must not be blank")
  .describe("For people; 1 to 200 characters");

const scheduleKeySchema = z
  .string()
  .min(1)
  .max(200)
  .describe("Chosen by the client, unique in its tenant; `key:<key>` then stands for the id");

const labelsSchema = z
  .record(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, "a label's name has 1 to 63 letters, digits or . _ / -"),
    z.string().max(200),
  )
  .refine((labels) => Object.keys(labels).length <= 64, "at most 64 labels")
  .describe("Up to 64 names and values to find schedules by");

const notesSchema = z.string().max(4000).describe("Free text for people");
const managedBySchema = z
  .string()
  .min(1)
  .max(200)
  .describe("The tool that owns this schedule, for people to know before they edit it");
export const noteSchema = z.string().max(1000).describe("Why, for the history");

/** Kept exactly as sent, whatever its keys are called: zod's own records would drop a key such as `__proto__`. */
export const payloadSchema = z
  .custom<Payload>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be a JSON object",
  )
  .meta({
    description: "A JSON object of at most 64 KiB, handed to the job",
    override: { type: "object", additionalProperties: true },
  });

export const PAYLOAD_BYTES = PAYLOAD_LIMIT_BYTES;

export const scheduleFields = definitionSchema.extend({
  name: nameSchema,
  key: scheduleKeySchema.optional(),
  labels: labelsSchema.default({}),
  managedBy: managedBySchema.optional(),
  notes: notesSchema.optional(),
  payload: payloadSchema.default({}),
});

export const limitSchema = z
  .string()
  .regex(/^\d{1,4}$/, "must be a whole number from 1 to 200")
  .transform(Number)
  .refine((limit) => limit >= 1 && limit <= 200, "must be a whole number from 1 to 200")
  .default(50)
  .meta({
    description: "Rows per page, 1 to 200",
    override: { type: "integer", minimum: 1, maximum: 200, default: 50 },
  });

/** The number of a revision or version in a path or query; `message` says what it must be. */
export const ordinalSchema = (message: string) =>
  z
    .string()
    .regex(/^[1-9]\d{0,8}$/, message)
    .transform(Number)
    .meta({ override: { type: "integer", minimum: 1 } });

export const afterSchema = z.string().max(1000).optional().describe("`next` of the page before; opaque");

/** An instant in a query or body: RFC 3339 with an offset, as epoch ms. */
export const instantSchema = z.iso
  .datetime({ offset: true, error: "must be an RFC 3339 instant with an offset, such as 2026-10-01T09:00:00Z" })
  .transform((text) => Date.parse(text))
  .meta({ override: { type: "string", format: "date-time" } });

export const shownInstant = z.string().meta({ format: "date-time" });
export const runParams = z.strictObject({ run: z.string().max(100).describe("Run id, `run_…`") });
export const scheduleParams = z.strictObject({
  schedule: z.string().max(300).describe("Schedule id, `sch_…`, or `key:<key>`"),
});

export const idempotencyHeaders = z.object({
  "idempotency-key": z
    .string()
    .optional()
    .describe("1 to 200 visible ASCII characters; the same key with the same body gives the same answer again"),
});
