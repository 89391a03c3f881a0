import { z } from "zod";
import { allKnown, headersSchema, PLACEHOLDERS_ARE } from "./http/headers.ts";
import { RETRIED, SUCCESSES, statusesSchema } from "./http/statuses.ts";
import { urlSchema } from "./http/url.ts";
import { FEW_PLACEHOLDERS, hasFewPlaceholders, textsOf } from "./template.ts";

const ms = (min: number, max: number) => z.int().min(min).max(max);
const DAY_MS = 86_400_000;
const MIB = 1_048_576;
/** Of a body's template. */
const LONGEST_TEMPLATE = 65_536;

const isSmall = (text: string) => text.length <= LONGEST_TEMPLATE;
const IS_SMALL = `at most ${LONGEST_TEMPLATE} characters`;

const bodySchema = z
  .union([
    z.null(),
    z.strictObject({
      json: z
        .json()
        .refine((value) => isSmall(JSON.stringify(value)), IS_SMALL)
        .refine((value) => textsOf(value).every(allKnown), PLACEHOLDERS_ARE),
    }),
    z.strictObject({ text: z.string().refine(isSmall, IS_SMALL).refine(allKnown, PLACEHOLDERS_ARE) }),
  ])
  .describe(
    'The payload as JSON unless said otherwise; null: none. A text of `json` that is one placeholder becomes what it stands for: `{"json": {"order": "{{payload.order}}"}}`',
  );

/** A call of the tenant's own HTTP endpoint. */
export const httpJobSchema = z
  .strictObject({
    kind: z.literal("http"),
    url: urlSchema,
    method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]).default("POST"),
    headers: headersSchema,
    body: bodySchema.optional(),
    timeoutMs: ms(100, DAY_MS)
      .default(30_000)
      .describe("From the first look-up to the last byte of the answer, redirects included"),
    expectedStatuses: statusesSchema
      .min(1)
      .default(SUCCESSES)
      .describe("Answers that are a success, whatever the body"),
    retryStatuses: statusesSchema
      .default(RETRIED)
      .describe("Answers after which it is tried again; others are failures"),
    redirects: z
      .discriminatedUnion("policy", [
        z.strictObject({ policy: z.literal("refuse") }),
        z.strictObject({ policy: z.literal("follow"), max: z.int().min(1).max(10).default(5) }),
      ])
      .prefault({ policy: "refuse" })
      .describe("Whether redirects are followed, each looked at like the first URL"),
    responseLimitBytes: ms(0, 64 * MIB)
      .default(MIB)
      .describe("How much of an answer is kept as the result, unpacked"),
    largeResponse: z.enum(["fail", "truncate"]).default("fail").describe("What becomes of a larger one"),
    completion: z
      .enum(["response", "callback"])
      .default("response")
      .describe("`callback`: the call brings a token, and after a 202 the target says with it how the run ended"),
    callbackWithinMs: ms(1000, 30 * DAY_MS)
      .optional()
      .describe("How long after its 202 the target may take; until the attempt's deadline unless said otherwise"),
  })
  .refine((job) => job.body == null || (job.method !== "GET" && job.method !== "HEAD"), {
    path: ["body"],
    error: "GET and HEAD have none",
  })
  .refine((job) => job.callbackWithinMs === undefined || job.completion === "callback", {
    path: ["callbackWithinMs"],
    error: "is of use with completion callback only",
  })
  .refine(hasFewPlaceholders, FEW_PLACEHOLDERS);
export type HttpJob = z.infer<typeof httpJobSchema>;
