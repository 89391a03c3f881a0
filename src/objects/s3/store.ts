import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { GetObjectCommand, type GetObjectCommandOutput, HeadObjectCommand } from "@aws-sdk/client-s3";
import { operatorError } from "../../kernel/errors.ts";
import type { ObjectReference, ObjectStat, ObjectStore, Verification } from "../port.ts";
import { SourceFailed } from "../source.ts";
import { isMissing, isRefusedCondition } from "./faults.ts";
import { findGuarantee, type Guarantee } from "./guarantee.ts";
import { downloadLink, uploadLink } from "./links.ts";
import { named, openPlace, type Place, type S3Options } from "./place.ts";
import { removeAll } from "./remove.ts";
import { upload, versionOf } from "./upload.ts";
import { listPage, removeAbandonedUploads } from "./walks.ts";

/**
 * Objects in a bucket, AWS's or any server's that speaks its protocol, under `<prefix><run>/<attempt>/<name>`. A reference
 * names a VersionId where the bucket keeps versions, else the ETag: then a read asks for exactly that (`If-Match`), and
 * keys are created once (`If-None-Match`). What the server offers is tried out before the first upload.
 */
export function createS3Store(options: S3Options): ObjectStore {
  const place = openPlace(options);
  let asked: Promise<Guarantee> | undefined;
  const guarantee = () => {
    // A server that did not answer is asked again.
    asked ??= findGuarantee(place).catch((error) => {
      asked = undefined;
      throw error;
    });
    return asked;
  };

  return {
    prepare: () => place.explained(async () => void (await guarantee())),
    uriOf: (key) => place.uriOf(key),
    async put(key, bytes, options) {
      try {
        return await place.explained(async () => upload(place, await guarantee(), key, bytes, options));
      } catch (error) {
        throw error instanceof SourceFailed ? error.cause : error;
      }
    },
    stat: (object) => place.explained(() => findStat(place, object)),
    verify: (object, expected) => place.explained(async () => verify(place, await guarantee(), object, expected)),
    open: (object) => place.explained(async () => (await getObject(place, object)).Body as Readable),
    downloadLink: async (object, options) =>
      place.options.presignsDownloads ? place.explained(() => downloadLink(place, object, options)) : undefined,
    uploadLink: (key, options) => place.explained(async () => uploadLink(place, await guarantee(), key, options)),
    remove: (uri) => place.explained(() => removeAll(place, place.keyOf(uri))),
    removeAbandoned: (beforeAt) => place.explained(() => removeAbandonedUploads(place, beforeAt)),
    list: (after) => place.explained(() => listPage(place, after)),
  };
}

async function findStat(place: Place, object: ObjectReference): Promise<ObjectStat | undefined> {
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

async function getObject(place: Place, object: ObjectReference): Promise<GetObjectCommandOutput> {
  const found = await findObject(place, object);
  if (found === undefined) {
    throw operatorError("object-missing", "An object is not in the object store", { uri: object.uri });
  }
  return found;
}

async function verify(
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
