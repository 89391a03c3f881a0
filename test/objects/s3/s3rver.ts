import { once } from "node:events";
import type { AddressInfo } from "node:net";
import S3rver from "s3rver";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import type { S3Server } from "./server.ts";

/**
 * s3rver: a real HTTP server of its own make, but an old one, without conditional writes, without versions, and not strict
 * about signatures. With `conditions` what AWS does since 2024 stands in front of it: `If-None-Match: *` of a create and
 * `If-Match` of a read.
 */
export async function startS3rver({ conditions }: { conditions: boolean }): Promise<S3Server> {
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    vhostBuckets: false,
    directory: makeTemporaryFolder("punctual-s3rver-"),
    resetOnClose: true,
    configureBuckets: [{ name: "results" }],
  });
  if (conditions) server.middleware.unshift(conditionsOf(server.store));
  await server.run();
  const { port } = server.httpServer.address() as AddressInfo;
  return {
    options: {
      endpoint: `http://127.0.0.1:${port}`,
      region: "us-east-1",
      pathStyle: true,
      credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
      bucket: "results",
    },
    async stop() {
      const closed = once(server.httpServer, "close");
      server.httpServer.close();
      server.httpServer.closeAllConnections();
      await closed;
    },
  };
}

function conditionsOf(store: S3rver["store"]): S3rver.Middleware {
  const busy = new Map<string, Promise<void>>();
  return async (ctx, next) => {
    const [, bucket = "", ...rest] = decodeURIComponent(ctx.path).split("/");
    const key = rest.join("/");
    const creates = (ctx.method === "PUT" && !("partNumber" in ctx.query)) || "uploadId" in ctx.query;
    if (creates && ctx.get("if-none-match") === "*") {
      // One after the other: a create that is under way may yet fail.
      const before = busy.get(key) ?? Promise.resolve();
      const mine = before.then(async () => {
        if (await store.existsObject(bucket, key)) refuse(ctx);
        else await next();
      });
      busy.set(
        key,
        mine.catch(() => undefined),
      );
      return mine;
    }
    const expected = ctx.get("if-match");
    if (expected !== "" && (ctx.method === "GET" || ctx.method === "HEAD")) {
      const found = await store.getObject(bucket, key, {});
      found?.content.destroy();
      if (found && found.metadata.etag !== expected) return refuse(ctx);
    }
    return next();
  };
}

function refuse(ctx: S3rver.Context): void {
  ctx.status = 412;
  ctx.type = "application/xml";
  ctx.body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>PreconditionFailed</Code><Message>no</Message></Error>`;
}
