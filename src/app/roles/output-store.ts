import type { OutputStore } from "../../api/worker/output-store.ts";
import { createObjectKey } from "../../objects/key.ts";
import { isMediaType } from "../../objects/media-type.ts";
import type { ObjectStore } from "../../objects/port.ts";

/** The object store as the API's workers hand their outputs in to it. */
export function outputStoreOf(objects: ObjectStore, limitBytes: number): OutputStore {
  return {
    limitBytes,
    isMediaType,
    uriOf: (output) => objects.uriOf(createObjectKey(output)),
    put: (output, bytes, options) => objects.put(createObjectKey(output), bytes, options),
    verify: (output, expected) => objects.verify(output, expected),
    uploadLink: (output, options) => objects.uploadLink(createObjectKey(output), options),
  };
}
