import { z } from "zod";
import { DEFAULT_OVERLAP_MS, LONGEST_OVERLAP_MS } from "../../domain/api-key.ts";

/** How long (s) a rotated key goes on beside the one that replaces it; `what` it does meanwhile. */
export const overlapFields = (what: string) =>
  z.strictObject({
    overlapSeconds: z
      .int()
      .min(0)
      .max(LONGEST_OVERLAP_MS / 1000)
      .default(DEFAULT_OVERLAP_MS / 1000)
      .describe(`How long the old key ${what}; a day, at most 30`),
  });
