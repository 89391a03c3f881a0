import { z } from "zod";
import { EVENT_TYPES } from "./events.ts";

/** Where a tenant listens, and for what. */

/** Each is one more row for every event it hears of. */
export const MOST_WEBHOOKS = 20;

const webhookUrlSchema = z
  .url({ protocol: /^https?$/, error: "must be an http or https URL" })
  .max(2000)
  .refine((text) => {
    const url = URL.parse(text);
    return url === null || (url.username === "" && url.password === "");
  }, "must not carry a user or a password");

export const webhookFields = z.strictObject({
  url: webhookUrlSchema.describe("Where events are posted to"),
  events: z
    .array(z.enum(EVENT_TYPES))
    .min(1)
    .refine((events) => new Set(events).size === events.length, "must be named once each")
    .describe("What it hears of"),
  description: z.string().max(500).nullable().default(null).describe("What it is for, for people"),
  scheduleIds: z
    .array(z.string().max(300))
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe("Only runs of these schedules (`sch_…` or `key:…`); null: all runs, also those without a schedule"),
  lateAfterMs: z
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(60_000)
    .describe("How long after it was due a run that has not started is late, for `run.late`"),
});
