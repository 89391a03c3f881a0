import { z } from "zod";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { fenceSchema, runIdSchema, sha256Schema, workerSchema } from "../../worker/attempt-fields.ts";
import {
  checkMediaType,
  grantOutput,
  outputNameSchema,
  stage,
  stagedSchema,
  unusable,
  withoutSecrets,
} from "../../worker/outputs.ts";
import { brokenOff, outputTooLarge, receive } from "../../worker/receiving.ts";
import { attemptOf } from "../../worker/speaker.ts";

const wholeText = (most: number, what: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be ${what}`)
    .transform(Number)
    .refine((number) => number <= most, `must be ${what}`)
    .meta({ override: { type: "integer", minimum: 0, maximum: most } });

export const putOutputRoute = defineRoute({
  method: "put",
  path: "/v1/worker/stage",
  tag: "workers",
  summary: "Upload an output and stage it",
  description:
    "The body is the bytes, as they are, of the media type in `Content-Type`. They are stored as they come, and only if all of them come; then the attempt's completion may name them. The same bytes under the same name are answered the same again.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  keepsRunsGoing: true,
  streams: true,
  params: noFields,
  query: z.strictObject({
    runId: runIdSchema.optional(),
    attempt: wholeText(2_000_000_000, "the attempt of the grant").optional(),
    fence: fenceSchema.optional(),
    worker: workerSchema.optional(),
    name: outputNameSchema,
    sha256: sha256Schema.optional(),
    size: wholeText(Number.MAX_SAFE_INTEGER, "a number of bytes").optional(),
  }),
  answer: { kind: "ok", description: "What to complete with", schema: stagedSchema },
  problems: [
    "not-found",
    "stale-fence",
    "not-holder",
    "lease-lapsed",
    "too-many-outputs",
    "output-unusable",
    "output-too-large",
  ],
  async handle({ query, stream, gone, header }, context, caller) {
    const { outputs, scrubbing } = context.workers;
    const { limitBytes } = outputs;
    const attempt = await attemptOf(context, caller, query);
    const length = header("content-length");
    const announced = { sha256: query.sha256, size: query.size ?? (length === undefined ? undefined : Number(length)) };
    if ((announced.size ?? 0) > limitBytes) throw outputTooLarge(limitBytes);
    const said = { name: query.name, mediaType: header("content-type") ?? "application/octet-stream" };
    const { name, mediaType } = withoutSecrets(await scrubbing.of(attempt), checkMediaType(outputs, said));
    const output = { ...attempt, name };
    const granted = await grantOutput(context, { ...output, uri: outputs.uriOf(output), mediaType });

    const { bytes, facts } = receive(stream!, announced, { limitBytes, clock: context.clock });
    const put = await outputs.put(output, bytes, { mediaType, signal: gone }).catch((error: unknown) => {
      // Nobody waits for an answer, and nothing of ours has failed.
      throw gone.aborted ? brokenOff() : error;
    });
    if (put.kind === "created")
      return { kind: "ok", body: await stage(context, attempt, granted.objectId, put.object) };
    // An upload whose end was not heard of: the same bytes are as good as it.
    const found = await outputs.verify({ uri: put.uri, version: null }, await facts());
    if (found.kind !== "intact") throw unusable("other bytes have this name in this attempt");
    return { kind: "ok", body: await stage(context, attempt, granted.objectId, found.object) };
  },
});
