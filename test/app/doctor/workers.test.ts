import { expect, it } from "vitest";
import { announceWorker } from "../../../src/authority/dispatch/presence.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { createWorld } from "../../support/world.ts";
import { callDoctor } from "./examined.ts";

it("the doctor finds a worker whose event loop was blocked lately, and says nothing of long ago", async () => {
  const world = await createWorld();
  const doctor = await callDoctor(world);
  const worker = {
    id: mintId(Date.now(), 0),
    name: "worker-a",
    slots: { short: { slots: 1, p95Ms: 5 } },
    version: "0",
  };
  const verdict = async () => (await doctor.look("workers"))[0]!;

  await announceWorker(world.authority, worker);
  expect(await verdict()).toMatchObject({ status: "ok" });
  await announceWorker(world.authority, { ...worker, blocked: { agoMs: 60_000, ms: 12_345.6 } });
  expect(await verdict()).toMatchObject({
    status: "finding",
    sentence: "the event loop of worker-a was blocked for 12.3 s within the last hour",
  });
  await announceWorker(world.authority, { ...worker, blocked: { agoMs: 3_700_000, ms: 12_345.6 } });
  expect(await verdict()).toMatchObject({ status: "ok" });
  await doctor.close();
  await world.close();
});
