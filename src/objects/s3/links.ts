import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import type { ObjectKey } from "../key.ts";
import type { DownloadOptions, ObjectReference, UploadLink } from "../port.ts";
import type { Guarantee } from "./guarantee.ts";
import { named, type Place } from "./place.ts";

const seconds = (ms: number) => Math.max(1, Math.floor(ms / 1000));

/** A link to that version; without versions to the key, which is created once. */
export function downloadLink(place: Place, object: ObjectReference, options: DownloadOptions): Promise<string> {
  // A browser sends no If-Match.
  const { IfMatch: _, ...plain } = named(place, object);
  const command = new GetObjectCommand({
    ...plain,
    ResponseContentType: options.mediaType,
    ResponseContentDisposition: dispositionOf(options.fileName),
  });
  return getSignedUrl(place.client, command, { expiresIn: seconds(options.forMs) });
}

/** Everything that narrows the permission is signed as a header, so the sender cannot leave it out. */
export async function uploadLink(
  place: Place,
  guarantee: Guarantee,
  key: ObjectKey,
  options: { mediaType: string; forMs: number },
): Promise<UploadLink> {
  const { ServerSideEncryption, SSEKMSKeyId } = place.sealed;
  const headers: Record<string, string> = { "content-type": options.mediaType };
  if (guarantee === "conditional") headers["if-none-match"] = "*";
  if (ServerSideEncryption !== undefined) headers["x-amz-server-side-encryption"] = ServerSideEncryption;
  if (SSEKMSKeyId !== undefined) headers["x-amz-server-side-encryption-aws-kms-key-id"] = SSEKMSKeyId;
  const command = new PutObjectCommand({
    ...place.at(key),
    ...place.sealed,
    ContentType: options.mediaType,
    ...(guarantee === "conditional" ? { IfNoneMatch: "*" } : {}),
  });
  const names = new Set(Object.keys(headers));
  const url = await getSignedUrl(place.client, command, {
    expiresIn: seconds(options.forMs),
    signableHeaders: new Set([...names, "host"]),
    unhoistableHeaders: names,
  });
  return { url, headers };
}

/** RFC 6266: plain for old readers, and whole (RFC 8187). */
function dispositionOf(fileName: string): string {
  const plain = fileName.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const whole = encodeURIComponent(fileName).replaceAll(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return plain === fileName
    ? `attachment; filename="${plain}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${whole}`;
}
