import type { Readable } from "node:stream";
import type { Instant } from "../kernel/clock.ts";
import type { ObjectKey } from "./key.ts";

/**
 * Where result bytes live. Names are immutable: a key is created once and never written again, so a paused worker
 * that wakes up late makes an orphan beside the canonical result, never a new content under its name.
 *
 * Faults (disk full, no permission, store unreachable) are thrown as operator errors; everything an ordinary caller
 * must expect is a value.
 */
export type ObjectStore = {
  /**
   * Creates `key` with these bytes, durably and at once: the object is invisible until it is whole, and when this
   * resolves it survives a power cut. An existing key is refused and left as it is. A source that throws leaves nothing.
   */
  put(key: ObjectKey, bytes: Bytes, options: { mediaType: string }): Promise<PutOutcome>;
  /** What is stored under `uri`, without reading it; undefined when there is nothing. */
  stat(uri: string): Promise<ObjectStat | undefined>;
  /** Reads the object and compares. Only `intact` may be registered as staged. */
  verify(uri: string, expected: { sha256: string; size: number }): Promise<Verification>;
  /** The bytes of `uri`. Throws `object-missing` when there is nothing. The reader must consume or destroy the stream. */
  open(uri: string): Promise<Readable>;
  /** Removes `uri`; removing what is not there is fine, so that cleanup may repeat. */
  remove(uri: string): Promise<void>;
  /** Clears uploads that never became visible and were last written before `beforeAt` (epoch ms); answers how many. */
  removeAbandoned(beforeAt: Instant): Promise<number>;
};

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

/** `version` names these very bytes (S3: the VersionId; filesystem: the hash). `sha256` is 64 hex digits, `size` in bytes. */
export type StoredObject = { uri: string; version: string; sha256: string; size: number };
export type ObjectStat = { uri: string; size: number };

export type PutOutcome = { kind: "created"; object: StoredObject } | { kind: "exists"; uri: string };

export type Verification =
  | { kind: "intact"; object: StoredObject }
  | { kind: "missing" }
  | { kind: "mismatch"; field: "size" | "sha256"; expected: string; found: string };
