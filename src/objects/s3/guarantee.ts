import { DeleteObjectCommand, PutObjectCommand, type PutObjectCommandOutput } from "@aws-sdk/client-s3";
import { operatorError } from "../../kernel/errors.ts";
import { isRefusedCondition, isUnsupported, statusOf } from "./faults.ts";
import type { Place } from "./place.ts";

/**
 * How a place keeps the promise that a reference's bytes never change.
 *   conditional   a key is created once (`If-None-Match: *`)
 *   versioned     every creation is a version of its own, and that version is read
 */
export type Guarantee = "conditional" | "versioned";

// Begins with a dot, which no object's key can. It stays there: the next start needs one request.
const PROBE = ".probe/created-once";

/**
 * Tries it out. A server that does not know the condition may refuse it or take no notice of it; neither is believed.
 * @throws `objects-unguarded` (operator) for a place with neither.
 */
export async function findGuarantee(place: Place): Promise<Guarantee> {
  const first = await tryCreate(place);
  if (first === "exists") return "conditional";
  if (first !== "unsupported" && (await tryCreate(place)) === "exists") return "conditional";
  const plain = await send(place, {});
  await place.client.send(new DeleteObjectCommand(probeOf(place)));
  if (isVersion(plain.VersionId)) return "versioned";
  const { bucket, endpoint } = place.options;
  throw operatorError(
    "objects-unguarded",
    `The object store offers neither conditional writes (If-None-Match) nor versions in bucket ${bucket}: a worker that ` +
      "wakes up late could overwrite a result. Enable versioning of the bucket, or use another server",
    { bucket, endpoint: endpoint ?? null },
  );
}

/** `null` is what a bucket without versions calls its only one. */
export function isVersion(id: string | undefined): id is string {
  return id !== undefined && id !== "null" && id !== "";
}

async function tryCreate(place: Place): Promise<"created" | "exists" | "unsupported"> {
  try {
    await send(place, { IfNoneMatch: "*" });
    return "created";
  } catch (error) {
    if (isRefusedCondition(error)) return "exists";
    if (isUnsupported(error) || statusOf(error) === 400) return "unsupported";
    throw error;
  }
}

function send(place: Place, condition: { IfNoneMatch?: "*" }): Promise<PutObjectCommandOutput> {
  return place.client.send(
    new PutObjectCommand({ ...probeOf(place), ...place.sealed, ...condition, Body: "created once" }),
  );
}

function probeOf(place: Place) {
  return { Bucket: place.options.bucket, Key: place.options.prefix + PROBE };
}
