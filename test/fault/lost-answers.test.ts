import { expect, test } from "vitest";
import { mintKey } from "../../src/api/keys.ts";
import { createApiKey } from "../../src/authority/tenants/create-api-key.ts";
import { type Answer, call } from "../api/server.ts";
import { freePort } from "../support/free-port.ts";
import { spawnNode } from "../support/system.ts";
import { createWorld } from "../support/world.ts";

test("B49 (5) an API that dies between commit and answer: the caller finds the schedule by its key, and a repeat makes no second", async ({
  onTestFinished,
}) => {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const minted = mintKey();
  await createApiKey(world.authority, { tenantId: world.tenantId, role: "owner", label: "t", ...minted });
  const body = {
    name: "once",
    rule: { kind: "cron", expression: "0 9 * * *", zone: "Etc/UTC" },
    job: { kind: "function", name: "report.run-summary", version: 1 },
    payload: { period: "last-day" },
  };
  const api = async (killAt?: string) => {
    const port = await freePort();
    const config = { PUNCTUAL_PORT: String(port), PUNCTUAL_SECRET: "a secret for tests" };
    const node = await spawnNode({
      url: world.url,
      roles: ["api"],
      config,
      ...(killAt === undefined ? {} : { killAt }),
    });
    const send = (method: string, path: string, sent?: unknown): Promise<Answer> =>
      call(`http://127.0.0.1:${port}`, method, path, {
        key: minted.key,
        body: sent,
        headers: { "idempotency-key": "k-5" },
      });
    return { node, send };
  };

  const doomed = await api("create-schedule:committed");
  await expect(doomed.send("POST", "/v1/schedules", body)).rejects.toThrow(/fetch failed/);
  await doomed.node.exited;

  const next = await api();
  onTestFinished(() => next.node.stop());
  const found = await next.send("GET", "/v1/schedules?requestKey=k-5");
  expect(found.status, found.text).toBe(200);
  const [made] = found.body.items as { scheduleId: string }[];
  const again = await next.send("POST", "/v1/schedules", body);
  expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
  expect(again.body.scheduleId).toBe(made!.scheduleId);
  expect((await world.admin.query("select count(*)::int as n from schedule")).rows).toEqual([{ n: 1 }]);
});
