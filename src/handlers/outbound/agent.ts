import { Agent, buildConnector } from "undici";
import { ForbiddenAddress, type OutboundGuard } from "./guard.ts";

export type OutboundOptions = { guard: OutboundGuard; connectTimeoutMs: number };

/** An HTTP agent for URLs that tenants name: every connection is dialled to an address the guard has looked at. */
export function createOutboundAgent(options: OutboundOptions): Agent {
  const { guard, connectTimeoutMs } = options;
  const connector = (addresses: Awaited<ReturnType<OutboundGuard["resolve"]>>) =>
    buildConnector({
      timeout: connectTimeoutMs,
      allowH2: false,
      // What was looked at is what is dialled.
      lookup: ((_host: string, wanted: { all?: boolean }, done: (...found: unknown[]) => void) =>
        wanted.all === true ? done(null, addresses) : done(null, addresses[0]!.address, addresses[0]!.family)) as never,
    } as buildConnector.BuildOptions);
  return new Agent({
    connect: (target, done) => {
      guard.resolve(target.hostname).then(
        (addresses) => connector(addresses)(target, done),
        (error: Error) => done(error, null),
      );
    },
    // A kept connection is one that was looked at; they are few, and nobody waits for them.
    keepAliveTimeout: 1_000,
    pipelining: 0,
    maxHeaderSize: 32_768,
  });
}

/** Whether a request failed before anything of it can have reached the other side. */
export function neverLeft(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof ForbiddenAddress) return true;
    const { code, syscall } = at as { code?: unknown; syscall?: unknown };
    if (syscall === "connect" || syscall === "getaddrinfo") return true;
    if (code === "UND_ERR_CONNECT_TIMEOUT" || /^(ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(String(code)))
      return true;
    if (at instanceof AggregateError && at.errors.length > 0 && at.errors.every(neverLeft)) return true;
  }
  return false;
}
