import type { ComponentStatus, HealthProbe } from "../api/health-probe.ts";
import { readEpoch } from "../authority/dispatch/published.ts";
import { findDoubts, showDoubts } from "../authority/recovery/doubts.ts";
import { readRedisFindings } from "../hints/findings.ts";
import { messageOf, PunctualError } from "../kernel/errors.ts";
import type { Core } from "./core.ts";

/** Whether this process can serve, and how its neighbours are. */
export function createHealthProbe(core: Core): HealthProbe {
  const since = new Map<string, { status: string; at: number }>();

  function sinceWhen(name: string, status: string): number {
    const known = since.get(name);
    if (known?.status === status) return known.at;
    const at = core.clock.now();
    since.set(name, { status, at });
    return at;
  }

  async function database(): Promise<string | undefined> {
    try {
      // Also says when the server is a restored or promoted copy.
      await readEpoch(core.authority);
      return undefined;
    } catch (error) {
      if (!(error instanceof PunctualError) || error.code !== "recovery-needed") return messageOf(error);
      return `${messageOf(error)}; ${showDoubts(await findDoubts(core.authority.db))}`;
    }
  }

  async function redis(): Promise<Pick<ComponentStatus, "status" | "effect">> {
    if (core.redis === undefined)
      return { status: "ok", effect: "no Redis is configured: work is taken straight from the outbox" };
    if (!core.redisAvailable())
      return { status: "degraded", effect: "Redis does not answer: work is taken straight from the outbox, slower" };
    try {
      const findings = await readRedisFindings(core.redis.connection);
      if (findings.mayEvict)
        return {
          status: "degraded",
          effect: `Redis may drop hints (maxmemory-policy ${findings.policy}): set noeviction`,
        };
    } catch (error) {
      return { status: "degraded", effect: messageOf(error) };
    }
    return { status: "ok", effect: "hints travel through Redis" };
  }

  return {
    async readiness() {
      const reason = await database();
      return { ready: reason === undefined, reasons: reason === undefined ? [] : [reason] };
    },
    async components() {
      const reason = await database();
      const hints = await redis();
      const postgres = reason === undefined ? "ok" : "down";
      return [
        {
          name: "postgresql",
          status: postgres,
          since: sinceWhen("postgresql", postgres),
          effect: reason ?? "schedules, runs and results are safe here",
        },
        { name: "redis", status: hints.status, since: sinceWhen("redis", hints.status), effect: hints.effect },
      ];
    },
  };
}
