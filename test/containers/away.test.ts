import { expect, test } from "vitest";
import { createContainerKeeper } from "../../src/dispatch/containers/keeper.ts";
import { createDockerEngine } from "../../src/handlers/containers/docker/engine.ts";
import type { ContainerEngine, FoundContainer } from "../../src/handlers/containers/engine.ts";
import { transientFailure } from "../../src/handlers/outcome.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { createWorld } from "../support/world.ts";

test("a worker whose container engine is away knows that it is the operator's to start", async () => {
  const world = await createWorld();
  const address = { socketPath: "/nowhere/engine.sock" };
  const engine = createDockerEngine({ address, clock: systemClock, accounts: new Map() });
  const keeper = createContainerKeeper({
    authority: world.authority,
    open: async () => ({ engine, installation: "inst" }),
    adopt: async () => 0,
  });
  await expect(keeper.pass(new AbortController().signal)).rejects.toMatchObject({
    actor: "operator",
    code: "engine-unavailable",
    message: expect.stringMatching(/^the container engine does not answer: [^\n]*ENOENT/),
  });
  await world.close();
});

test("leftovers that cannot be removed are in the way of no others", async () => {
  const world = await createWorld();
  const left = Array.from({ length: 30 }, (_, i): FoundContainer => {
    const run = `run_${String(i + 1).padStart(26, "0")}`;
    return { id: String(i), name: run, identity: { installation: "inst", run, attempt: 1, fence: 1n }, phase: "ended" };
  });
  const removed = new Set<string>();
  const engine = {
    list: async () => left,
    async remove(id: string) {
      if (Number(id) < 25) throw transientFailure("engine-error", "the container engine refused: device busy");
      removed.add(id);
    },
  } as Partial<ContainerEngine> as ContainerEngine;
  const keeper = createContainerKeeper({
    authority: world.authority,
    open: async () => ({ engine, installation: "inst" }),
    adopt: async () => 0,
  });
  expect(await keeper.pass(new AbortController().signal)).toEqual({ did: 5, more: false });
  expect([...removed]).toEqual(["25", "26", "27", "28", "29"]);
  await world.close();
});
