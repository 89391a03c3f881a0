import { z } from "zod";
import { POLL_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { workerSchema } from "../../worker/attempt-fields.ts";
import { termsOf, termsSchema } from "../../worker/grants.ts";
import { showHint } from "../../worker/hints.ts";

const LONGEST_WAIT_MS = 30_000;
const jobSchema = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,99}@[1-9]\d{0,6}$/,
    "must be the name and version of a remote job, such as report.monthly@1",
  );

export const pollRoute = defineRoute({
  method: "post",
  path: "/v1/worker/poll",
  tag: "workers",
  summary: "Ask for work, and wait for some",
  description:
    "Answers as soon as runs of these jobs may start, or with no hints when `waitMs` is over: ask again at once. Hints promise nothing; claim them.",
  roles: ["worker"],
  whileSuspended: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    worker: workerSchema,
    jobs: z.array(jobSchema).min(1).max(100).describe("What the worker can do, `name@version`"),
    slots: z.int().min(1).max(100).default(1).describe("How many runs it could begin now"),
    concurrency: z.int().min(1).max(10_000).optional().describe("How many it does at once, for who looks at workers"),
    version: z.string().max(100).default("").describe("The worker's own version, for people"),
    waitMs: z.int().min(0).max(LONGEST_WAIT_MS).default(20_000).describe("How long to wait for work"),
  }),
  example: POLL_BODY,
  answer: {
    kind: "ok",
    description: "Hints, at most one for each slot",
    schema: z.strictObject({ hints: z.array(z.string()), terms: termsSchema }),
  },
  problems: [],
  async handle({ body, gone }, context, { tenantId }) {
    const { worker: name, jobs, slots, concurrency = slots, version, waitMs } = body;
    context.workers.presence.asks({ tenantId, name, jobs, concurrency, version });
    const hints = await context.workers.polls.wait({ tenantId, jobs, slots, waitMs, gone });
    return {
      kind: "ok",
      body: { hints: hints.map((hint) => showHint(context.cursors, hint)), terms: termsOf(context) },
    };
  },
});
