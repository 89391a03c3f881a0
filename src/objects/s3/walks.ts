import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import type { Instant } from "../../kernel/clock.ts";
import { readObjectKey } from "../key.ts";
import type { ObjectPage } from "../port.ts";
import { isMissing, isUnsupported } from "./faults.ts";
import type { Place } from "./place.ts";

/** A thousand keys, the most that a server lists at once. What is no object's key is passed over. */
export async function listPage(place: Place, after: string | undefined): Promise<ObjectPage> {
  const { bucket, prefix } = place.options;
  const found = await place.client.send(
    new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ...(after === undefined ? {} : { StartAfter: after }) }),
  );
  const contents = found.Contents ?? [];
  const objects = contents.flatMap(({ Key, LastModified }) => {
    const read = readObjectKey((Key ?? "").slice(prefix.length));
    return read && [{ uri: place.uriOf(read.key), parts: read.parts, storedAt: LastModified?.getTime() ?? 0 }];
  });
  return {
    objects: objects.filter((one) => one !== undefined),
    next: found.IsTruncated === true ? contents.at(-1)?.Key : undefined,
  };
}

/** Ends multipart uploads begun before `beforeAt`. A server that cannot list them has to end them by a rule of its own. */
export async function removeAbandonedUploads(place: Place, beforeAt: Instant): Promise<number> {
  const { bucket, prefix } = place.options;
  let removed = 0;
  let marker: { KeyMarker?: string; UploadIdMarker?: string } | undefined = {};
  while (marker !== undefined) {
    const found = await listUploads(place, { Bucket: bucket, Prefix: prefix, ...marker });
    for (const { Key, UploadId, Initiated } of found?.Uploads ?? []) {
      if ((Initiated?.getTime() ?? beforeAt) >= beforeAt) continue;
      await abort(place, { Bucket: bucket, Key, UploadId });
      removed++;
    }
    const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = found ?? {};
    marker =
      IsTruncated === true && NextKeyMarker !== undefined
        ? {
            KeyMarker: NextKeyMarker,
            ...(NextUploadIdMarker === undefined ? {} : { UploadIdMarker: NextUploadIdMarker }),
          }
        : undefined;
  }
  return removed;
}

type ListInput = ConstructorParameters<typeof ListMultipartUploadsCommand>[0];

async function listUploads(place: Place, input: ListInput) {
  try {
    return await place.client.send(new ListMultipartUploadsCommand(input));
  } catch (error) {
    if (isUnsupported(error)) return undefined;
    throw error;
  }
}

async function abort(place: Place, input: ConstructorParameters<typeof AbortMultipartUploadCommand>[0]): Promise<void> {
  try {
    await place.client.send(new AbortMultipartUploadCommand(input));
  } catch (error) {
    if (!isMissing(error)) throw error; // it ended meanwhile
  }
}
