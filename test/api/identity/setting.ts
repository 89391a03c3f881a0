import { type Clock, systemClock } from "../../../src/kernel/clock.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { type Answer, call, type TestServer } from "../server.ts";

/** The system's clock, which a test may move on. */
export function movableClock(): Clock & { forward(ms: number): void } {
  let aheadMs = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
    forward(ms) {
      aheadMs += ms;
    },
  };
}

/** Calls with one credential, in the tenant that is given or in the credential's own. */
export function callerOf(server: Pick<TestServer, "url">, key: string, tenantId?: string) {
  const headers = tenantId === undefined ? {} : { "punctual-tenant": showId("ten", tenantId) };
  return (method: string, path: string, body?: unknown): Promise<Answer> =>
    call(server.url, method, path, { key, headers, ...(body === undefined ? {} : { body }) });
}

export const SCHEDULE = {
  name: "Sales",
  rule: { kind: "cron", expression: "0 9 * * 1-5", zone: "Etc/UTC" },
  job: { kind: "function", name: "report.run-summary", version: 1 },
};
