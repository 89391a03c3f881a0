import type { Readable } from "node:stream";
import type { ObjectStore } from "../port.ts";
import { SourceFailed } from "../source.ts";
import { findGuarantee, type Guarantee } from "./guarantee.ts";
import { downloadLink, uploadLink } from "./links.ts";
import { openPlace, type S3Options } from "./place.ts";
import { findStat, getObject, verify } from "./read.ts";
import { removeAll } from "./remove.ts";
import { upload } from "./upload.ts";
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
