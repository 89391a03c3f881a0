import { z } from "zod";
import { showId } from "../../../kernel/ids.ts";
import { UPLOAD_BODY } from "../../examples/workers.ts";
import { shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { defineRoute } from "../../route.ts";
import { spokenFields } from "../../worker/attempt-fields.ts";
import { checkMediaType, grantOutput, outputNameSchema, withoutSecrets } from "../../worker/outputs.ts";
import { attemptOf } from "../../worker/speaker.ts";

export const uploadRoute = defineRoute({
  method: "post",
  path: "/v1/worker/upload",
  tag: "workers",
  summary: "Ask where to upload an output",
  description:
    "Where results are in a bucket, the answer has a link to upload the bytes to it, until the lease ends; `POST /v1/worker/stage` then says that they are there. Elsewhere `upload` is null: `PUT /v1/worker/stage` takes the bytes.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({ ...spokenFields, name: outputNameSchema, mediaType: z.string().max(200) }),
  example: UPLOAD_BODY,
  answer: {
    kind: "ok",
    description: "Leave to upload this one output",
    schema: z.strictObject({
      objectId: z.string(),
      upload: z
        .strictObject({
          method: z.literal("PUT"),
          url: z.url(),
          headers: z.record(z.string(), z.string()).describe("To be sent along, and no others"),
          expiresAt: shownInstant,
        })
        .nullable(),
    }),
  },
  problems: ["not-found", "stale-fence", "not-holder", "lease-lapsed", "too-many-outputs"],
  async handle({ body }, context, caller) {
    const { outputs, scrubbing } = context.workers;
    const attempt = await attemptOf(context, caller, body);
    const said = checkMediaType(outputs, { name: body.name, mediaType: body.mediaType });
    const { name, mediaType } = withoutSecrets(await scrubbing.of(attempt), said);
    const output = { ...attempt, name };
    const uri = outputs.uriOf(output);
    const granted = await grantOutput(context, { ...attempt, name, uri, mediaType });
    const { objectId, untilAt } = granted;
    const forMs = Math.max(1_000, untilAt - context.clock.now());
    const link = await outputs.uploadLink(output, { mediaType, forMs });
    const upload = link && { method: "PUT" as const, ...link, expiresAt: showInstant(untilAt) };
    return { kind: "ok", body: { objectId: showId("obj", objectId), upload: upload ?? null } };
  },
});
