import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { HeadObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import type { ObjectKey } from "../key.ts";
import type { Bytes, PutOutcome } from "../port.ts";
import { chunksOf, SourceFailed } from "../source.ts";
import { isConflict, isMissing, isRefusedCondition } from "./faults.ts";
import { type Guarantee, isVersion } from "./guarantee.ts";
import type { Place } from "./place.ts";
import { verify, versionOf } from "./read.ts";

/** Up to this an object is sent whole, in one request that the SDK can repeat; beyond, in parts of this size. */
const PART_BYTES = 8 << 20;
/** Parts on their way at once: with the one being filled, what an upload may hold in memory. */
const PARTS_AT_ONCE = 2;
const CONFLICT_TRIES = 5;

/** As `put` of the port. */
export async function upload(
  place: Place,
  guarantee: Guarantee,
  key: ObjectKey,
  bytes: Bytes,
  options: { mediaType: string; signal?: AbortSignal },
): Promise<PutOutcome> {
  const uri = place.uriOf(key);
  const source = counted(chunksOf(bytes, options.signal));
  const head = await firstPart(source.chunks);
  const common = { ...place.at(key), ...place.sealed, ContentType: options.mediaType };
  const condition = guarantee === "conditional" ? { IfNoneMatch: "*" as const } : {};
  const signal = options.signal;
  // What was created before is not written once more; without the condition this is also all that refuses it.
  const asksFirst = guarantee === "versioned" || !head.isAll;
  if (asksFirst && (await exists(place, key))) return { kind: "exists", uri };
  try {
    const answer = head.isAll
      ? await sendWhole(
          place,
          { ...common, ...condition, Metadata: { sha256: source.sha256() }, Body: head.bytes },
          signal,
        )
      : await sendParts(
          place,
          { ...common, ...condition, Body: Readable.from(resumed(head.bytes, source.chunks), { objectMode: false }) },
          signal,
        );
    const facts = { sha256: source.sha256(), size: source.size() };
    if (!head.isAll && guarantee === "versioned" && !isVersion(answer.VersionId)) {
      // Some servers do not say which version a multipart upload became: what is there now is read, to be sure.
      const found = await verify(place, guarantee, { uri, version: null }, facts);
      return found.kind === "intact" ? { kind: "created", object: found.object } : { kind: "exists", uri };
    }
    return { kind: "created", object: { uri, version: versionOf(answer, guarantee, place), ...facts } };
  } catch (error) {
    if (isRefusedCondition(error)) return { kind: "exists", uri };
    // Whatever the tidying up after it met.
    throw (
      source.failure() ?? (signal?.aborted === true ? new SourceFailed("aborted", { cause: signal.reason }) : error)
    );
  }
}

async function exists(place: Place, key: ObjectKey): Promise<boolean> {
  try {
    await place.client.send(new HeadObjectCommand(place.at(key)));
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

type Sent = { VersionId?: string | undefined; ETag?: string | undefined };
type Input = ConstructorParameters<typeof PutObjectCommand>[0];

async function sendWhole(place: Place, input: Input, signal: AbortSignal | undefined): Promise<Sent> {
  for (let left = CONFLICT_TRIES; ; left--) {
    try {
      const options = signal === undefined ? {} : { abortSignal: signal };
      return await place.client.send(new PutObjectCommand(input), options);
    } catch (error) {
      // The other one may yet fail: only then is this one first.
      if (!isConflict(error) || left === 0) throw error;
    }
  }
}

/** A source that fails, and an abort, leave no parts behind; a process that dies leaves them to removeAbandoned. */
async function sendParts(place: Place, params: Input, signal: AbortSignal | undefined): Promise<Sent> {
  const parts = new Upload({ client: place.client, params, partSize: PART_BYTES, queueSize: PARTS_AT_ONCE });
  const abort = () => void parts.abort().catch(() => undefined);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    return await parts.done();
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

function counted(source: AsyncIterable<Uint8Array>) {
  const hash = createHash("sha256");
  let size = 0;
  let digest: string | undefined;
  let failure: unknown;
  const chunks = (async function* () {
    try {
      for await (const chunk of source) {
        hash.update(chunk);
        size += chunk.byteLength;
        yield chunk;
      }
    } catch (error) {
      failure = error;
      throw error;
    }
  })();
  return {
    chunks,
    failure: () => failure,
    size: () => size,
    sha256() {
      digest ??= hash.digest("hex");
      return digest;
    },
  };
}

/** Reads on until a part is full or the source has ended. */
async function firstPart(chunks: AsyncIterator<Uint8Array>): Promise<{ bytes: Uint8Array; isAll: boolean }> {
  const read: Uint8Array[] = [];
  let size = 0;
  while (size <= PART_BYTES) {
    const next = await chunks.next();
    if (next.done === true) return { bytes: Buffer.concat(read), isAll: true };
    read.push(next.value);
    size += next.value.byteLength;
  }
  return { bytes: Buffer.concat(read), isAll: false };
}

async function* resumed(head: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* rest;
}
