import { z } from "zod";
import { readId } from "../../../kernel/ids.ts";
import { findOutput } from "../../../store/reads/workers/outputs.ts";
import { STAGE_BODY } from "../../examples/workers.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { sha256Schema, spokenFields } from "../../worker/attempt-fields.ts";
import { stage, stagedSchema, unusable } from "../../worker/outputs.ts";
import { attemptOf } from "../../worker/speaker.ts";

export const stageRoute = defineRoute({
  method: "post",
  path: "/v1/worker/stage",
  tag: "workers",
  summary: "Say that an output was uploaded to its link",
  description: "The bytes are read and compared; then the attempt's completion may name them.",
  roles: ["worker"],
  callbacks: true,
  whileSuspended: true,
  keepsRunsGoing: true,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    ...spokenFields,
    objectId: z.string().max(100).describe("Of the answer that had the link"),
    sha256: sha256Schema,
    size: z.int().min(0).describe("Bytes"),
  }),
  example: STAGE_BODY,
  answer: { kind: "ok", description: "What to complete with", schema: stagedSchema },
  problems: ["not-found", "stale-fence", "not-holder", "lease-lapsed", "output-unusable"],
  async handle({ body }, context, caller) {
    const attempt = await attemptOf(context, caller, body);
    const id = readId("obj", body.objectId);
    const output = id === undefined ? undefined : await findOutput(context.db, caller.tenantId, id);
    if (id === undefined || output === undefined) throw unusable("no such object");
    if (output.runId !== attempt.runId || output.fence !== attempt.fence) throw unusable("another attempt's");
    const { sha256, size } = body;
    const found = await context.workers.outputs.verify({ uri: output.uri, version: null }, { sha256, size });
    if (found.kind === "missing") throw unusable("nothing was uploaded");
    if (found.kind === "mismatch") throw unusable(`another ${found.field}: ${found.found}`);
    return { kind: "ok", body: await stage(context, attempt, id, found.object) };
  },
});
