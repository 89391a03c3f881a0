import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { GetObjectCommand, type GetObjectCommandOutput, HeadObjectCommand } from "@aws-sdk/client-s3";
import { operatorError } from "../../kernel/errors.ts";
import type { ObjectReference, ObjectStat, Verification } from "../port.ts";
import { isMissing, isRefusedCondition } from "./faults.ts";
import { type Guarantee, isVersion } from "./guarantee.ts";
import { named, type Place } from "./place.ts";

/** The version as references carry it: `id:` and a VersionId, or `etag:` and an ETag. */
export function versionOf(
  answer: { VersionId?: string | undefined; ETag?: string | undefined },
  guarantee: Guarantee,
  place: Place,
): string {
  if (isVersion(answer.VersionId)) return `id:${answer.VersionId}`;
  if (guarantee === "versioned") {
    const { bucket } = place.options;
    throw operatorError("objects-unguarded", "The bucket does not keep versions any more: enable versioning", {
      bucket,
    });
  }
  return `etag:${answer.ETag ?? ""}`;
}

export async function findStat(place: Place, object: ObjectReference): Promise<ObjectStat | undefined> {
  try {
    const { ContentLength } = await place.client.send(new HeadObjectCommand(named(place, object)));
    return { uri: object.uri, size: ContentLength ?? 0 };
  } catch (error) {
    // Other bytes than those that were named are no object of that name.
    if (isMissing(error) || isRefusedCondition(error)) return undefined;
    throw error;
  }
}

async function findObject(place: Place, object: ObjectReference): Promise<GetObjectCommandOutput | undefined> {
  try {
    return await place.client.send(new GetObjectCommand(named(place, object)));
  } catch (error) {
    if (isMissing(error) || isRefusedCondition(error)) return undefined;
    throw error;
  }
}

export async function getObject(place: Place, object: ObjectReference): Promise<GetObjectCommandOutput> {
  const found = await findObject(place, object);
  if (found === undefined) {
    throw operatorError("object-missing", "An object is not in the object store", { uri: object.uri });
  }
  return found;
}

export async function verify(
  place: Place,
  guarantee: Guarantee,
  object: ObjectReference,
  expected: { sha256: string; size: number },
): Promise<Verification> {
  const found = await findObject(place, object);
  if (found === undefined) return { kind: "missing" };
  const body = found.Body as Readable;
  if (found.ContentLength !== expected.size) {
    body.destroy();
    return mismatch("size", expected.size, found.ContentLength ?? 0);
  }
  const hash = createHash("sha256");
  for await (const chunk of body) hash.update(chunk);
  const sha256 = hash.digest("hex");
  if (sha256 !== expected.sha256) return mismatch("sha256", expected.sha256, sha256);
  const version = versionOf(found, guarantee, place);
  return { kind: "intact", object: { uri: object.uri, version, sha256, size: expected.size } };
}

function mismatch(field: "size" | "sha256", expected: string | number, found: string | number): Verification {
  return { kind: "mismatch", field, expected: String(expected), found: String(found) };
}
