declare module "s3rver" {
  import type { Server } from "node:http";
  import type { Readable } from "node:stream";

  class S3rver {
    constructor(options: Record<string, unknown>);
    middleware: S3rver.Middleware[];
    store: {
      existsObject(bucket: string, key: string): Promise<boolean>;
      getObject(
        bucket: string,
        key: string,
        options: object,
      ): Promise<{ content: Readable; metadata: Record<string, string> } | null>;
    };
    httpServer: Server;
    run(): Promise<unknown>;
  }
  namespace S3rver {
    /** As much of Koa's as is used. */
    type Context = {
      method: string;
      path: string;
      query: Record<string, unknown>;
      status: number;
      type: string;
      body: unknown;
      get(header: string): string;
    };
    type Middleware = (ctx: Context, next: () => Promise<unknown>) => Promise<unknown>;
  }
  export = S3rver;
}
