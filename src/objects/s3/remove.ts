import { DeleteObjectCommand, ListObjectVersionsCommand } from "@aws-sdk/client-s3";
import type { ObjectKey } from "../key.ts";
import { isMissing } from "./faults.ts";
import { isVersion } from "./guarantee.ts";
import type { Place } from "./place.ts";

/** Deletes the key; in a bucket that keeps versions, every one of them, and the marker that the deletion itself left. */
export async function removeAll(place: Place, key: ObjectKey): Promise<void> {
  const at = place.at(key);
  const answer = await remove(place, at);
  if (answer?.DeleteMarker !== true && !isVersion(answer?.VersionId)) return;
  // Each look begins anew: what was found before is gone.
  for (;;) {
    const found = await place.client.send(new ListObjectVersionsCommand({ Bucket: at.Bucket, Prefix: at.Key }));
    const versions = [...(found.Versions ?? []), ...(found.DeleteMarkers ?? [])].filter((one) => one.Key === at.Key);
    for (const { VersionId } of versions) await remove(place, { ...at, VersionId });
    if (versions.length === 0 || found.IsTruncated !== true) return;
  }
}

async function remove(place: Place, at: { Bucket: string; Key: string; VersionId?: string | undefined }) {
  try {
    const { VersionId, ...rest } = at;
    return await place.client.send(new DeleteObjectCommand(VersionId === undefined ? rest : { ...rest, VersionId }));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
