import { S3Client, type S3ClientConfig, type ServerSideEncryption } from "@aws-sdk/client-s3";
import { operatorError, PunctualError } from "../../kernel/errors.ts";
import { type ObjectKey, parseObjectKey } from "../key.ts";
import type { ObjectReference } from "../port.ts";
import { asS3Fault } from "./faults.ts";

export type S3Options = {
  bucket: string;
  /** Begins every key; ends with a slash unless it is empty. */
  prefix: string;
  region: string;
  /** Where no server of AWS is meant. */
  endpoint?: string | undefined;
  pathStyle?: boolean;
  /** Undefined: the SDK looks in its usual places (environment, profile, the machine's role). */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
  encryption?: { algorithm: ServerSideEncryption; kmsKeyId?: string | undefined } | undefined;
  /** Longest wait for a connection's next sign of life. */
  timeoutMs: number;
  /** Whether download links lead to the store itself. */
  presignsDownloads: boolean;
};

/** A bucket, the prefix in it, and the client that reaches them. */
export type Place = {
  readonly options: S3Options;
  readonly client: S3Client;
  uriOf(key: ObjectKey): string;
  keyOf(uri: string): ObjectKey;
  /** Names an object in requests. */
  at(key: ObjectKey): { Bucket: string; Key: string };
  /** What encrypts new objects. */
  readonly sealed: { ServerSideEncryption?: ServerSideEncryption; SSEKMSKeyId?: string };
  /** Runs the work, its faults put in our words. */
  explained<T>(work: () => Promise<T>): Promise<T>;
};

const SCHEME = "s3:";
const TRIES = 4;
const CONNECTION_TIMEOUT_MS = 5_000;
const MOST_SOCKETS = 100;

/** URIs contain neither bucket nor prefix, so that the objects may move. */
export function openPlace(options: S3Options): Place {
  const { bucket, prefix, encryption } = options;
  const client = new S3Client(clientConfig(options));
  const sealed = encryption && {
    ServerSideEncryption: encryption.algorithm,
    ...(encryption.kmsKeyId === undefined ? {} : { SSEKMSKeyId: encryption.kmsKeyId }),
  };
  return {
    options,
    client,
    uriOf: (key) => SCHEME + key,
    keyOf(uri) {
      if (!uri.startsWith(SCHEME)) {
        throw operatorError("object-elsewhere", "An object lives in another store than the one configured", { uri });
      }
      return parseObjectKey(uri.slice(SCHEME.length));
    },
    at: (key) => ({ Bucket: bucket, Key: prefix + key }),
    sealed: sealed ?? {},
    async explained(work) {
      try {
        return await work();
      } catch (error) {
        throw error instanceof PunctualError ? error : asS3Fault(error, { bucket });
      }
    },
  };
}

/** Exactly that version of the object. */
export function named(
  place: Place,
  { uri, version }: ObjectReference,
): { Bucket: string; Key: string; VersionId?: string; IfMatch?: string } {
  const at = place.at(place.keyOf(uri));
  if (version?.startsWith("id:")) return { ...at, VersionId: version.slice("id:".length) };
  if (version?.startsWith("etag:")) return { ...at, IfMatch: version.slice("etag:".length) };
  return at;
}

function clientConfig(options: S3Options): S3ClientConfig {
  return {
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    forcePathStyle: options.pathStyle ?? false,
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    maxAttempts: TRIES,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      socketTimeout: options.timeoutMs,
      httpAgent: { maxSockets: MOST_SOCKETS },
      httpsAgent: { maxSockets: MOST_SOCKETS },
    },
    // Bodies are signed with their SHA-256, which the server checks. Checksums in trailers are unknown to many servers.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  };
}
