import { type IncomingMessage, request as overTcp } from "node:http";
import { request as overTls } from "node:https";
import type { Socket } from "node:net";
import { ConnectTimeout, type Patience } from "./dial.ts";
import { ForbiddenAddress } from "./guard.ts";

export type EgressProxy = {
  /** http or https; user and password are for the proxy. */
  url: URL;
  /** Where names are looked up, and so where their addresses are looked at. */
  resolve: "here" | "proxy";
};

/** The proxy is there and did not open the way: it, and not the target, is what is wrong. */
class ProxyRefused extends Error {
  readonly code = "ERR_PROXY";
  readonly syscall = "connect";
}

/** A connection to `host:port` through the proxy. Its own address is the operator's word, and not looked at. */
export function tunnel({ url }: EgressProxy, host: string, port: number, patience: Patience): Promise<Socket> {
  const { clock, timeoutMs, signal } = patience;
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = (url.protocol === "https:" ? overTls : overTcp)({
      method: "CONNECT",
      host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port),
      path: authority,
      headers: { host: authority, ...credentialsOf(url) },
      agent: false,
    });
    const timer = clock.after(timeoutMs, () =>
      request.destroy(new ConnectTimeout(`the egress proxy opened no connection within ${timeoutMs} ms`)),
    );
    const abort = () => request.destroy(signal?.reason instanceof Error ? signal.reason : new Error("told to stop"));
    const settle = () => {
      timer.cancel();
      // The connection outlives the wish for it.
      signal?.removeEventListener("abort", abort);
    };
    signal?.addEventListener("abort", abort);
    request
      .on("connect", (answer: IncomingMessage, socket: Socket, head: Buffer) => {
        settle();
        const refusal = refusalOf(answer.statusCode ?? 0, authority);
        if (refusal === undefined) {
          if (head.length > 0) socket.unshift(head);
          return resolve(socket);
        }
        socket.destroy();
        reject(refusal);
      })
      .on("response", (answer: IncomingMessage) => {
        settle();
        answer.destroy();
        reject(refusalOf(answer.statusCode ?? 0, authority) ?? new ProxyRefused("the egress proxy knows no CONNECT"));
      })
      .on("error", (error) => {
        settle();
        reject(error);
      })
      .end();
  });
}

function refusalOf(status: number, authority: string): Error | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 403) return new ForbiddenAddress(`${authority}: the egress proxy does not let anybody there`);
  if (status === 407) return new ProxyRefused("the egress proxy wants other credentials (407)");
  return new ProxyRefused(`the egress proxy answered ${status} for ${authority}`);
}

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(text).toString("base64")}` };
}
