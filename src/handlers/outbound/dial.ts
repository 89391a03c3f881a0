import { connect, type Socket } from "node:net";
import type { Address } from "../../kernel/addresses.ts";
import type { Clock } from "../../kernel/clock.ts";

export type Patience = { clock: Clock; timeoutMs: number; signal?: AbortSignal | undefined };

/** A TCP connection to one of these addresses, whichever answers first. Nothing is looked up any more. */
export function dialAddresses(addresses: readonly Address[], port: number, patience: Patience): Promise<Socket> {
  if (addresses.length === 0) throw Object.assign(new Error("the name has no address"), { syscall: "getaddrinfo" });
  return opened(
    connect({
      // Of no meaning: what it stands for was looked at, and is what is dialled.
      host: "looked-at.invalid",
      port,
      autoSelectFamily: true,
      lookup: (_host, wanted, done) =>
        wanted.all === true
          ? done(null, [...addresses])
          : done(null, addresses[0]!.address, addresses[0]!.family as number),
    }),
    "connect",
    patience,
  );
}

/** Waits for the socket's event, at most so long; a socket that is given up is destroyed. */
export function opened<S extends Socket>(socket: S, event: string, { clock, timeoutMs, signal }: Patience): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      timer.cancel();
      signal?.removeEventListener("abort", abort);
      socket.off("error", fail).off(event, succeed).off("close", close);
    };
    const fail = (error: Error) => {
      settle();
      socket.on("error", () => undefined).destroy();
      reject(error);
    };
    const succeed = () => {
      settle();
      resolve(socket);
    };
    const close = () => fail(Object.assign(new Error("the connection was closed"), { syscall: "connect" }));
    const abort = () => fail(signal!.reason instanceof Error ? signal!.reason : new Error("told to stop"));
    const timer = clock.after(timeoutMs, () => fail(new ConnectTimeout(`no connection within ${timeoutMs} ms`)));
    socket.on("error", fail).on(event, succeed).on("close", close);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort);
  });
}

export class ConnectTimeout extends Error {
  readonly code = "ETIMEDOUT";
  readonly syscall = "connect";
}
