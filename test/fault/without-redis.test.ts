import { expect, test } from "vitest";
import { allSucceed, dueSchedule, startNode } from "../support/system.ts";
import { createWorld } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

test("without Redis the whole system runs on PostgreSQL alone, workers sharing the work", async () => {
  const world = await createWorld();
  const ledgers = [createLedger(2), createLedger(2)];
  const config = { PUNCTUAL_SLOTS_SHORT: "10" };
  const nodes = [
    await startNode({ roles: ["scheduler", "relay", "sweeper"], url: world.url }),
    ...(await Promise.all(
      ledgers.map(({ job }) => startNode({ roles: ["worker"], url: world.url, config, jobs: [job] })),
    )),
  ];
  try {
    for (const name of ["globex", "initech", "umbrella"]) {
      const tenantId = await world.newTenant(name);
      await dueSchedule(world.authority, world.admin, { tenantId, runs: 200, job: "test.count" });
    }
    await dueSchedule(world.authority, world.admin, {
      tenantId: world.tenantId,
      runs: 4,
      job: "test.count",
      dueAgoMs: 0,
    });
    await allSucceed(world.admin, 604);
    expect(ledgers[0]!.executions + ledgers[1]!.executions).toBe(604);
    expect(Math.min(...ledgers.map((one) => one.executions))).toBeGreaterThan(50);
  } finally {
    for (const node of nodes) await node.stop();
    await world.check();
    await world.close();
  }
});
