import { z } from "zod";
import { grantUpload, MOST_OUTPUTS, type UploadGrant } from "../../authority/objects/grant-upload.ts";
import { stageObject } from "../../authority/objects/stage-object.ts";
import { type KnownSecrets, SCRUBBED } from "../../domain/secrets/known.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import type { ApiContext } from "../context.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import { sha256Schema } from "./attempt-fields.ts";
import type { OutputStore } from "./output-store.ts";
import { leaseLapsed, type SpokenAttempt, staleFence } from "./speaker.ts";

export const outputNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "must be a file name of 1 to 100 letters, digits or . _ -")
  .describe("The file's name, one for each output of an attempt");

export const stagedSchema = z.strictObject({ objectId: z.string(), sha256: sha256Schema, size: z.int() });

type Named = { name: string; mediaType: string };

export function checkMediaType(outputs: OutputStore, named: Named): Named {
  if (outputs.isMediaType(named.mediaType)) return named;
  throw fieldProblem({
    field: "mediaType",
    message: "is no media type",
    found: JSON.stringify(named.mediaType.slice(0, 80)),
    allowed: "a media type such as text/csv; charset=utf-8, at most 200 characters",
  });
}

/** What an output is called is kept and shown, its bytes are the job's own. In neither are brackets allowed. */
export function withoutSecrets(secrets: KnownSecrets, { name, mediaType }: Named): Named {
  const without = (text: string) => secrets.scrub(text).replaceAll(SCRUBBED, "secret");
  return secrets.count === 0 ? { name, mediaType } : { name: without(name), mediaType: without(mediaType) };
}

/** A place for an output, registered before its upload begins. */
export async function grantOutput(
  { authority }: Pick<ApiContext, "authority">,
  output: Parameters<typeof grantUpload>[1],
): Promise<Extract<UploadGrant, { kind: "granted" }>> {
  const granted = await grantUpload(authority, output);
  if (granted.kind === "stale-fence") throw staleFence();
  if (granted.kind === "lease-lapsed") throw leaseLapsed();
  if (granted.kind === "too-many-outputs") {
    const detail = `The attempt has ${MOST_OUTPUTS} outputs already, of which one can be its result`;
    throw new Problem("too-many-outputs", detail, { more: { limit: MOST_OUTPUTS } });
  }
  return granted;
}

/** Says that the bytes are there: from now on the attempt's completion may name them. */
export async function stage(
  { authority }: Pick<ApiContext, "authority">,
  { runId, fence }: SpokenAttempt,
  objectId: Uuid,
  object: { uri: string; version: string; sha256: string; size: number },
): Promise<z.input<typeof stagedSchema>> {
  const answer = await stageObject(authority, { runId, fence, objectId, ...object });
  if (answer.kind === "stale-fence") throw staleFence();
  if (answer.kind === "lease-lapsed") throw leaseLapsed();
  if (answer.kind === "no-grant") throw unusable(answer.found);
  return { objectId: showId("obj", objectId), sha256: object.sha256, size: object.size };
}

export function unusable(found: string): Problem {
  return new Problem("output-unusable", `The output cannot be the result: ${found}`, { more: { found } });
}
