import type { Readable } from "node:stream";
import type { Instant } from "../kernel/clock.ts";
import type { ObjectKey, ObjectParts } from "./key.ts";

/**
 * Where result bytes live. A reference (uri and version) names bytes that never change: a key is created once, or, where
 * a store cannot promise that, each creation of it is a version of its own. So a paused worker that wakes up late makes an
 * orphan beside the canonical result, never a new content under its reference.
 *
 * Faults (disk full, no permission, store unreachable) are thrown as operator errors, retryable where time may mend them;
 * everything an ordinary caller must expect is a value.
 */
export type ObjectStore = {
  /** Finds out whether the store can keep the promise above, and refuses it in words where it cannot. Safe to repeat. */
  prepare(): Promise<void>;
  /** Where an object of this key is, or will be. */
  uriOf(key: ObjectKey): string;
  /**
   * Creates `key` with these bytes, durably and at once: the object is invisible until it is whole, and when this
   * resolves it survives a power cut. An existing key is refused and left as it is. A source that throws, or a signal that
   * aborts, leaves nothing.
   */
  put(key: ObjectKey, bytes: Bytes, options: { mediaType: string; signal?: AbortSignal }): Promise<PutOutcome>;
  /** What is stored there, without reading it; undefined when there is nothing. */
  stat(object: ObjectReference): Promise<ObjectStat | undefined>;
  /** Reads the object and compares. Only `intact` may be registered as staged, with the version that was read. */
  verify(object: ObjectReference, expected: { sha256: string; size: number }): Promise<Verification>;
  /** The bytes. Throws `object-missing` when there is nothing. The reader must consume or destroy the stream. */
  open(object: ObjectReference): Promise<Readable>;
  /** A link that gives these very bytes to whoever holds it, until it expires; undefined: they go through the API. */
  downloadLink(object: ObjectReference, options: DownloadOptions): Promise<string | undefined>;
  /** A permission to create this one key, until it expires; undefined: the bytes go through the API. */
  uploadLink(key: ObjectKey, options: { mediaType: string; forMs: number }): Promise<UploadLink | undefined>;
  /** Removes every version of what is there; removing what is not there is fine, so that cleanup may repeat. */
  remove(uri: string): Promise<void>;
  /** Clears uploads that never became visible and were last written before `beforeAt` (epoch ms); answers how many. */
  removeAbandoned(beforeAt: Instant): Promise<number>;
  /** Some of the objects there are, those after the place that the page before ended at. Other files are not named. */
  list(after: string | undefined): Promise<ObjectPage>;
};

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

/** `version` null: whatever is there now. */
export type ObjectReference = { uri: string; version: string | null };
/** `version` names these very bytes (S3: VersionId or ETag; filesystem: the hash). `sha256` is 64 hex digits, `size` in bytes. */
export type StoredObject = { uri: string; version: string; sha256: string; size: number };
export type ObjectStat = { uri: string; size: number };

export type PutOutcome = { kind: "created"; object: StoredObject } | { kind: "exists"; uri: string };

export type Verification =
  | { kind: "intact"; object: StoredObject }
  | { kind: "missing" }
  | { kind: "mismatch"; field: "size" | "sha256"; expected: string; found: string };

export type DownloadOptions = { mediaType: string; fileName: string; forMs: number };
/** `PUT url` with these headers, and no others that matter. */
export type UploadLink = { url: string; headers: Readonly<Record<string, string>> };

export type ListedObject = { uri: string; parts: ObjectParts; storedAt: Instant };
/** `next`: where the next page begins; undefined: this was the last. */
export type ObjectPage = { objects: ListedObject[]; next: string | undefined };
