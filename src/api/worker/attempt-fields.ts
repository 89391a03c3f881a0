import { z } from "zod";

/** Fields by which workers and callbacks say of which attempt they speak. */

const LARGEST_FENCE = 2n ** 63n - 1n;

const NOT_A_FENCE = "must be the fence of the grant, a whole number as text";

export const fenceSchema = z
  .string()
  .regex(/^[1-9]\d{0,18}$/, NOT_A_FENCE)
  .refine((text) => text.length < 19 || BigInt(text) <= LARGEST_FENCE, NOT_A_FENCE)
  .transform(BigInt)
  .meta({
    description: "The fence of the grant, as text: it is larger than what JSON numbers keep in every language",
    override: { type: "string", pattern: "^[1-9][0-9]{0,18}$" },
  });

export const workerSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}$/, "must be 1 to 100 letters, digits or . _ : @ -")
  .describe("What the worker calls itself: one name for each process, the same in all its calls");

export const runIdSchema = z.string().max(100).describe("Run id, `run_…`");
export const attemptSchema = z.int().min(1).max(2_000_000_000).describe("The attempt of the grant");

/** The attempt, and who holds it. A callback token names its attempt itself: whoever calls with one may leave all of it out. */
export const spokenFields = {
  runId: runIdSchema.optional(),
  attempt: attemptSchema.optional(),
  fence: fenceSchema.optional(),
  worker: workerSchema.optional(),
};

export const cancelRequestedSchema = z.boolean().describe("Stop, and fail the attempt: then the run is canceled");

export const sha256Schema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in 64 lower-case hexadecimal digits")
  .describe("SHA-256 of the bytes, 64 hexadecimal digits");
