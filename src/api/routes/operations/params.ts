import { z } from "zod";

export const operationParams = z.strictObject({
  operation: z.string().max(100).describe("Operation id, `op_…`"),
});
