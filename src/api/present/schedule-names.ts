import { z } from "zod";

/** Beside an id, what people call the schedule now. */
export const scheduleNamesSchema = z
  .strictObject({
    key: z.string().nullable().describe("null: it has none, or is deleted and has given it away"),
    name: z.string(),
  })
  .nullable()
  .describe("What the schedule is called now");
