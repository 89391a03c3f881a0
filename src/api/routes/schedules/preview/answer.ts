import { z } from "zod";
import type { Preview } from "../../../../domain/preview/answer.ts";
import { PREVIEW } from "../../../examples.ts";
import { presentTiming, timingSchema } from "../../../present/preview.ts";
import { feasibilitySchema } from "./feasibility.ts";

/** What both previews answer. */
export const previewSchema = timingSchema
  .extend({
    feasibility: feasibilitySchema
      .nullable()
      .describe("Whether the runs of the busiest of these minutes can start in time; null without instants"),
    tzVersion: z.string().describe("The pinned tz database these were computed by"),
  })
  .meta({ id: "SchedulePreview", example: PREVIEW });

export function presentPreview(
  preview: Preview,
  feasibility: z.output<typeof feasibilitySchema> | null,
  tzVersion: string,
): z.output<typeof previewSchema> {
  return { ...presentTiming(preview), feasibility, tzVersion };
}
