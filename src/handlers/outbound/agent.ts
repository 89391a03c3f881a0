import type { Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import type { Target } from "../../domain/outbound/policy.ts";
import type { Clock } from "../../kernel/clock.ts";
import { refuseCrumbs } from "./crumbs.ts";
import { ForbiddenAddress } from "./guard.ts";
import { isLookUpFault } from "./look-up.ts";

/**
 * An HTTP agent whose every connection is opened by `open`, which looks at where it leads. Connections are kept for a
 * moment, for calls that come in bursts, however long the other side offers to keep them: what is kept is not looked at again.
 */
export function createAgent(
  open: (target: Target) => Promise<Socket>,
  { clock, connectTimeoutMs }: { clock: Pick<Clock, "monotonic">; connectTimeoutMs: number },
): Dispatcher {
  const secure = buildConnector({ timeout: connectTimeoutMs, allowH2: false });
  const agent = new Agent({
    connect: (wanted, done) => {
      const isSecure = wanted.protocol === "https:";
      const port = wanted.port === "" ? (isSecure ? 443 : 80) : Number(wanted.port);
      open({ host: wanted.hostname, port }).then(
        (socket) => {
          socket.setNoDelay(true).setKeepAlive(true, 60_000);
          if (isSecure) secure({ ...wanted, httpSocket: socket }, done);
          else done(null, socket);
        },
        (error: Error) => done(error, null),
      );
    },
    keepAliveTimeout: KEPT_MS,
    keepAliveMaxTimeout: KEPT_MS,
    pipelining: 1,
    maxHeaderSize: 32_768,
  });
  return agent.compose(refuseCrumbs(clock));
}

const KEPT_MS = 1_000;

/** Whether a request failed before anything of it can have reached the other side. */
export function neverLeft(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof ForbiddenAddress) return true;
    const { code, syscall } = at as { code?: unknown; syscall?: unknown };
    if (syscall === "connect" || isLookUpFault(at)) return true;
    if (code === "UND_ERR_CONNECT_TIMEOUT" || HANDSHAKE.test(String(code))) return true;
    if (at instanceof AggregateError && at.errors.length > 0 && at.errors.every(neverLeft)) return true;
  }
  return false;
}

/** Faults that come before anything is sent. */
const HANDSHAKE = /^(ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/;

/** The other side could not prove who it is, or speaks no TLS that we do. */
export function isTlsFault(code: unknown): boolean {
  return HANDSHAKE.test(String(code)) || String(code).startsWith("ERR_SSL");
}
