import type { Authority } from "../authority/authority.ts";
import { grantUpload, MOST_OUTPUTS } from "../authority/objects/grant-upload.ts";
import { stageObject } from "../authority/objects/stage-object.ts";
import type { OutputBytes, StagedOutput } from "../handlers/context.ts";
import { permanentFailure, transientFailure } from "../handlers/outcome.ts";
import type { Uuid } from "../kernel/ids.ts";
import { digesting } from "../objects/digest.ts";
import { createObjectKey, type ObjectKey } from "../objects/key.ts";
import { ALLOWED_MEDIA_TYPE, isMediaType } from "../objects/media-type.ts";
import type { ObjectStore, StoredObject } from "../objects/port.ts";
import { boundedOutput } from "./bounded-output.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { HeldAttempt } from "./held.ts";
import { insist } from "./insist.ts";

export type OutputTools = {
  authority: Authority;
  objects: ObjectStore;
  heartbeats: Pick<Heartbeats, "revive">;
  /** Nobody waits for answers any more: the process is ending. */
  ending: AbortSignal;
  /** Most bytes of one output. */
  outputLimitBytes: number;
};

/** What an attempt staged, by URI: what its completion may name. */
export type Outputs = Map<string, { objectId: Uuid; sha256: string }>;

/**
 * Grant, upload, stage. Lost replies and a lapsed lease cost patience, not the finished work: a repeated grant is the
 * same one, a repeated upload finds its own bytes.
 * @throws JobFailure `media-type-invalid`, `output-invalid` or `output-too-large` (permanent); transient ones when the
 * attempt lost its run or its grant.
 */
export async function stageOutput(
  tools: OutputTools,
  attempt: HeldAttempt,
  staged: Outputs,
  { name, bytes, mediaType }: OutputBytes,
): Promise<StagedOutput> {
  if (!isMediaType(mediaType)) {
    const found = JSON.stringify(mediaType)?.slice(0, 200) ?? "nothing";
    throw permanentFailure("media-type-invalid", `mediaType: found ${found}; allowed: ${ALLOWED_MEDIA_TYPE}`);
  }
  const { authority, ending, objects } = tools;
  const { runId, attempt: n, fence } = attempt.grant;
  const patience = { ending, untilMs: attempt.deadlineMs };
  const key = createObjectKey({ runId, attempt: n, fence, name });

  const granted = await whileLapsed(tools, attempt, () =>
    insist(authority, patience, () =>
      grantUpload(authority, { runId, fence, name, uri: objects.uriOf(key), mediaType }),
    ),
  );
  if (granted.kind === "too-many-outputs") {
    throw permanentFailure(granted.kind, `an attempt may have ${MOST_OUTPUTS} outputs at most`);
  }
  if (granted.kind !== "granted") throw transientFailure(granted.kind, "the attempt may not upload any more");

  // Who was told to stop before may still offer what is finished: the grant says that nobody has taken over.
  const { signal } = attempt.stop;
  const bounded = boundedOutput(bytes, tools.outputLimitBytes);
  const output = { name, bytes: bounded.bytes, mediaType };
  const object = await upload(objects, key, output, signal.aborted ? undefined : signal).catch((error: unknown) => {
    throw bounded.failure() ?? error;
  });
  const { uri, version, sha256, size } = object;
  const facts = { runId, fence, objectId: granted.objectId, uri, version, sha256, size };
  const answer = await whileLapsed(tools, attempt, () =>
    insist(authority, patience, () => stageObject(authority, facts)),
  );
  if (answer.kind !== "staged") {
    const found = answer.kind === "no-grant" ? answer.found : answer.kind;
    throw transientFailure("object-unusable", `the upload was not accepted: ${found}`);
  }
  staged.set(uri, { objectId: granted.objectId, sha256 });
  return { ...object, name, mediaType };
}

/** Says it again as long as the lease had lapsed and nobody took over meanwhile: the work is as good as it was. */
export async function whileLapsed<Answer extends { kind: string }>(
  tools: Pick<OutputTools, "heartbeats">,
  attempt: HeldAttempt,
  say: () => Promise<Answer>,
): Promise<Answer> {
  for (;;) {
    const answer = await say();
    if (answer.kind !== "lease-lapsed" || !(await tools.heartbeats.revive(attempt))) return answer;
  }
}

/** Creates the object; one that is there already with these very bytes is an upload whose end was not heard of. */
async function upload(
  objects: ObjectStore,
  key: ObjectKey,
  output: OutputBytes,
  signal: AbortSignal | undefined,
): Promise<StoredObject> {
  const { bytes, digest } = digesting(output.bytes);
  const put = await objects.put(key, bytes, {
    mediaType: output.mediaType,
    ...(signal === undefined ? {} : { signal }),
  });
  if (put.kind === "created") return put.object;
  const found = await objects.verify({ uri: put.uri, version: null }, await digest());
  if (found.kind === "intact") return found.object;
  throw transientFailure("object-exists", `an output named ${output.name} was staged before, with other bytes`);
}
