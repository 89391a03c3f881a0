import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Payload } from "../../../src/domain/definition.ts";
import { type HttpJob, httpJobSchema } from "../../../src/domain/jobs/http.ts";
import { type KnownSecrets, NO_SECRETS } from "../../../src/domain/secrets/known.ts";
import { executeHandler } from "../../../src/handlers/execute.ts";
import type { CallTools } from "../../../src/handlers/http/calls.ts";
import { runHttp } from "../../../src/handlers/http/run-http.ts";
import type { HandlerOutcome } from "../../../src/handlers/outcome.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { outboundOf } from "../../support/outbound.ts";
import { TLS } from "../../support/tls.ts";
import { type TestContext, testContext } from "../context.ts";

/** The address of targets in these tests: the only one that may be reached. */
export const HERE = "127.0.0.5";

export type Call = { method: string; path: string; headers: IncomingMessage["headers"]; body: string };
export type Answering = (response: ServerResponse, call: Call, request: IncomingMessage) => void;

/** A server of a tenant: it answers as `answer` says at the moment, and remembers who connected and called. */
export type Target = {
  url: string;
  port: number;
  calls: Call[];
  connections: number;
  answer: Answering;
  close(): Promise<void>;
};

export async function openTarget(options: { host?: string; port?: number; tls?: boolean } = {}): Promise<Target> {
  const { host = HERE, port = 0, tls = false } = options;
  const listen: RequestListener = async (request, response) => {
    response.on("error", () => undefined);
    const body = await text(request).catch(() => "");
    const call = { method: request.method!, path: request.url!, headers: request.headers, body };
    target.calls.push(call);
    target.answer(response, call, request);
  };
  const server: Server = tls ? createSecureServer(TLS, listen) : createServer(listen);
  const sockets = new Set<Socket>();
  const target: Target = {
    url: "",
    port: 0,
    calls: [],
    connections: 0,
    answer: (response) => void response.end("ok"),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
  server.on("connection", (socket: Socket) => {
    target.connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(port, host);
  await once(server, "listening");
  target.port = (server.address() as AddressInfo).port;
  target.url = `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${target.port}`;
  return target;
}

export function reset(target: Target): void {
  target.calls = [];
  target.connections = 0;
  target.answer = (response) => void response.end("ok");
}

export type Attempted = { outcome: HandlerOutcome; ctx: TestContext };

/** One attempt of the job, as a worker runs it. */
export async function attempt(
  job: Omit<Partial<HttpJob>, "url"> & { url: string } & Record<string, unknown>,
  options: {
    payload?: Payload;
    secrets?: KnownSecrets;
    signal?: AbortSignal;
    names?: Record<string, string | string[]>;
    tools?: Partial<CallTools>;
  } = {},
): Promise<Attempted> {
  const { payload = {}, secrets = NO_SECRETS, signal, names = {}, tools } = options;
  const ctx = testContext(signal === undefined ? {} : { signal });
  ctx.run.id = "run_01kct0v2mz8h3bmq5d0v5x2c9r";
  const outbound = outboundOf({ allow: [HERE], names });
  const http = runHttp({
    outbound,
    keys: { keysOf: async () => [] },
    clock: systemClock,
    userAgent: "Punctual/test",
    ...tools,
  });
  const parsed = httpJobSchema.parse({ kind: "http", ...job });
  const outcome = await executeHandler({ http }, parsed, ctx, payload, secrets);
  await outbound.close();
  return { outcome, ctx };
}
