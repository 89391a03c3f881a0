import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";

const CHILD = fileURLToPath(new URL("./hostile-child.ts", import.meta.url));

/** How the run of each deed ends. */
const ENDS = {
  patient: "succeeded",
  "number as code": "503",
  "proxy thrown": "handler-error",
  "stray rejection": "succeeded",
  "stray rejection of a proxy": "succeeded",
  "process.exit": "process-exit",
  "process.exit of a library that hides its failure": "succeeded",
  "process.exit in a timer": "succeeded",
  "process.abort": "process-exit",
  "throw in a timer": "succeeded",
  "throwing abort listener": "attempt-timeout",
};

test("no job can end the process in which the jobs of others run", async () => {
  const world = await createWorld();
  const schedules = new Map<string, string>();
  for (const deed of Object.keys(ENDS)) {
    const id = await world.newSchedule({
      payload: { deed },
      retry: { maxAttempts: 1 } as never,
      attemptTimeoutMs: deed === "throwing abort listener" ? 1_000 : 20_000,
    });
    schedules.set(id, deed);
    await world.makeDue(id);
  }
  await world.materialize([...schedules.keys()]);

  const options = { roles: ["worker"], url: world.url, config: { PUNCTUAL_SLOTS_SHORT: "20" } };
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [CHILD], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { PATH, NODE_COMPILE_CACHE, PUNCTUAL_TEST_NODE: JSON.stringify({ options, directory: "" }) },
  });
  const exited = once(child, "exit");
  try {
    await until("every run ends", async () => child.exitCode !== null || (await world.live()).length === 0);
    const { rows } = await world.admin.query("select schedule_id, state, error_code from run");
    const ends = rows.map((row) => [schedules.get(row.schedule_id), row.error_code ?? row.state]);
    expect(Object.fromEntries(ends)).toEqual(ENDS);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await exited).toEqual([0, null]);
  await world.check();
  await world.close();
});
