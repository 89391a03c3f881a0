import type { S3Options } from "../../../src/objects/s3/place.ts";

/** A running S3 server with an empty bucket. */
export type S3Server = {
  options: Pick<S3Options, "endpoint" | "region" | "pathStyle" | "credentials" | "bucket">;
  stop(): Promise<void>;
};
