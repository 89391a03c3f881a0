import type { Socket } from "node:net";
import type { Dispatcher } from "undici";
import type { Uuid } from "../../kernel/ids.ts";

/** The ways out to where tenants point: every connection is to an address that was looked at, under that tenant's own rules. */
export type Outbound = {
  /** For HTTP. */
  agentFor(tenantId: Uuid): Promise<Dispatcher>;
  /**
   * A TCP connection, for brokers and the like.
   * @throws ForbiddenAddress where the tenant may not go; otherwise the connection's own error.
   */
  dial(tenantId: Uuid, target: { host: string; port: number }, signal: AbortSignal): Promise<Socket>;
};
