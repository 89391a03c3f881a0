import { z } from "zod";

export const effectParams = z.strictObject({
  effect: z.string().max(100).describe("Effect id, `eff_…`"),
});
