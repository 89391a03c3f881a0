import { isIP, type Socket } from "node:net";
import { connect } from "node:tls";
import type { Clock } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { opened } from "../outbound/dial.ts";
import type { Outbound } from "../outbound/outbound.ts";

/** Where a broker is, and as whom it is spoken to. */
export type BrokerAddress = {
  tenantId: Uuid;
  tls: boolean;
  host: string;
  port: number;
  user: string;
  password: string;
  /** The number of a Redis database, or a virtual host. */
  room: string;
};

export type Dial = (address: BrokerAddress, signal: AbortSignal) => Promise<Socket>;

/** A stage that takes longer than any delivery waits is given up in any case. */
const LONGEST_MS = 60_000;

/** A connection to an address that was looked at; under TLS its certificate must be the host's, whatever the address is. */
export function dialBrokers(outbound: Pick<Outbound, "dial">, clock: Clock): Dial {
  return async ({ tenantId, tls, host, port }, signal) => {
    const socket = await outbound.dial(tenantId, { host, port }, signal);
    socket.setNoDelay(true);
    if (!tls) return socket;
    socket.on("error", () => undefined);
    const secure = connect({ socket, host, servername: isIP(host) === 0 ? host : "" });
    return opened(secure, "secureConnect", { clock, timeoutMs: LONGEST_MS, signal });
  };
}
