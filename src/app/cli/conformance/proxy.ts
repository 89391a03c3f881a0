import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { systemClock } from "../../../kernel/clock.ts";

/** A call that a worker made, as the proxy saw it. */
export type SeenCall = {
  atMs: number;
  verb: string;
  body: Record<string, unknown>;
  status: number;
  answer: Record<string, unknown>;
  /** The API did what was asked, and the worker did not hear of it. */
  isLost: boolean;
};

/**
 * Stands between a worker and the API, and makes it harder: answers have fields that nobody told the worker of, and some
 * never arrive.
 */
export type WorkerProxy = {
  url: string;
  calls: readonly SeenCall[];
  /** Loses the answer to the next call of this verb that the API takes. */
  lose(verb: string): void;
  close(): Promise<void>;
};

const UNKNOWN = { conformance: { ignore: ["fields", "that are new"] } };

export async function startProxy(apiUrl: string, port: number): Promise<WorkerProxy> {
  const calls: SeenCall[] = [];
  const losing: string[] = [];

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const { authorization, "content-type": type } = request.headers;
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const answered = await fetch(apiUrl + request.url, {
      method: request.method ?? "GET",
      headers: { ...(authorization && { authorization }), ...(type && { "content-type": type }) },
      ...(body.length === 0 ? {} : { body }),
      signal: gone.signal,
    });
    const text = await answered.text();
    const answer = readJson(text);
    const verb = /^\/v1\/worker\/(\w+)/.exec(request.url ?? "")?.[1] ?? "";
    const losesAt = answered.ok ? losing.indexOf(verb) : -1;
    const isLost = losesAt >= 0;
    if (isLost) losing.splice(losesAt, 1);
    const seen = { verb, body: readJson(body.toString()), status: answered.status, answer, isLost };
    calls.push({ atMs: systemClock.monotonic(), ...seen });
    if (isLost) return void response.destroy();
    response.writeHead(answered.status, { "content-type": answered.headers.get("content-type") ?? "text/plain" });
    response.end(answered.ok ? JSON.stringify(withUnknown(answer)) : text);
  }

  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    lose: (verb) => void losing.push(verb),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function readJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** The answer and every object in its lists, each with a field more; payloads are the tenant's own. */
function withUnknown(answer: Record<string, unknown>): Record<string, unknown> {
  const more = Object.entries(answer).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.map((one) => (typeof one === "object" ? { ...one, ...UNKNOWN } : one)) : value,
  ]);
  return { ...Object.fromEntries(more), ...UNKNOWN };
}
