import { trustedRows } from "../../api/identity/trusted-rows.ts";
import { createOutbound } from "../../handlers/outbound/create-outbound.ts";
import type { Outbound } from "../../handlers/outbound/outbound.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Database } from "../../store/database.ts";
import { findOutboundRules } from "../../store/reads/tenants/outbound.ts";
import type { Config } from "../config.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** The ways out of this process. What an admin changes holds from 5 s later on at the latest. */
export function openOutbound(config: Config, clock: Clock, db: Database): Outbound & { close(): Promise<void> } {
  const find = trustedRows(clock, (tenantId) => findOutboundRules(db, tenantId));
  const proxy = config.PUNCTUAL_EGRESS_PROXY;
  return createOutbound({
    clock,
    rulesOf: async (tenantId) => (await find(tenantId))?.outbound ?? null,
    allow: config.PUNCTUAL_OUTBOUND_ALLOW ?? [],
    proxy: proxy === undefined ? undefined : { url: new URL(proxy), resolve: config.PUNCTUAL_EGRESS_RESOLVE },
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  });
}
