import { join, resolve } from "node:path";
import { PunctualError } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";
import { createFilesystemStore } from "../objects/filesystem.ts";
import type { ObjectStore } from "../objects/port.ts";
import { createS3Store } from "../objects/s3/store.ts";
import type { Config } from "./config.ts";

const DAY_MS = 86_400_000;

/** Where results go: a directory that every worker and API replica shares, or a bucket. */
export function openObjects(config: Config): ObjectStore {
  if (config.PUNCTUAL_OBJECTS === "filesystem") {
    return createFilesystemStore({
      root: resolve(config.PUNCTUAL_OBJECTS_DIR ?? join(config.PUNCTUAL_DIR, "objects")),
    });
  }
  const [accessKeyId, secretAccessKey] = [config.PUNCTUAL_S3_ACCESS_KEY, config.PUNCTUAL_S3_SECRET_KEY];
  const algorithm = config.PUNCTUAL_S3_ENCRYPTION;
  return createS3Store({
    bucket: config.PUNCTUAL_S3_BUCKET!,
    prefix: config.PUNCTUAL_S3_PREFIX,
    region: config.PUNCTUAL_S3_REGION,
    endpoint: config.PUNCTUAL_S3_ENDPOINT,
    pathStyle: config.PUNCTUAL_S3_PATH_STYLE === "yes",
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined,
    encryption: algorithm === "none" ? undefined : { algorithm, kmsKeyId: config.PUNCTUAL_S3_KMS_KEY },
    timeoutMs: config.PUNCTUAL_S3_TIMEOUT_MS,
    presignsDownloads: config.PUNCTUAL_S3_DOWNLOADS === "presigned",
  });
}

/** How long results are kept. */
export function resultsKeptMs(config: Config): number {
  return config.PUNCTUAL_RESULTS_DAYS * DAY_MS;
}

/**
 * Nothing starts on a store that cannot keep its promise. One that does not answer is no reason not to: it is asked again
 * before the first upload.
 */
export function objectsReady({ objects, log }: { objects: ObjectStore; log: Log }): Service {
  return {
    name: "objects",
    async start() {
      try {
        await objects.prepare();
      } catch (error) {
        if (!(error instanceof PunctualError && error.retryable)) throw error;
        log.warn(
          { code: error.code, ...error.details },
          "the object store does not answer; attempts cannot stage results",
        );
      }
    },
    async stop() {},
  };
}
