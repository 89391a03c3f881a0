import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { containerJobSchema } from "../../../src/domain/jobs/container.ts";
import { createDockerEngine } from "../../../src/handlers/containers/docker/engine.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";

// The engine is one that is killed in the middle of its answer: a real socket that closes there.
test("an engine that is killed in the middle of an answer costs who asked its patience, and not for ever", async () => {
  const socketPath = join(makeTemporaryFolder("punctual-engine-"), "engine.sock");
  const killed = createServer((socket) => {
    socket.once("data", () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"Id":'));
  });
  killed.listen(socketPath);
  await once(killed, "listening");
  // As patient as the real one, and a hundred times as fast.
  const clock = { ...systemClock, after: (ms: number, fn: () => void) => systemClock.after(ms / 100, fn) };
  const engine = createDockerEngine({ address: { socketPath }, clock, accounts: new Map() });

  const silent = { code: "engine-unavailable", transient: true, message: expect.stringContaining("within 15000 ms") };
  await expect(engine.phase("0123")).rejects.toMatchObject(silent);
  await expect(engine.list("inst")).rejects.toMatchObject(silent);
  await expect(engine.remove("0123")).rejects.toMatchObject({ code: "engine-unavailable" });
  // A log that breaks off says so by itself.
  const read = async () => {
    for await (const _ of engine.logs("0123", { follow: true, signal: new AbortController().signal }));
  };
  await expect(read()).rejects.toMatchObject({ code: "engine-unavailable" });
  killed.close();
});

test("who stops waiting for an engine hears why it was told to, and not that the engine refused", async () => {
  const socketPath = join(makeTemporaryFolder("punctual-engine-"), "engine.sock");
  const silent = createServer(() => undefined);
  silent.listen(socketPath);
  await once(silent, "listening");
  const engine = createDockerEngine({ address: { socketPath }, clock: systemClock, accounts: new Map() });
  const stop = new AbortController();
  const { signal } = stop;
  const read = async (bytes: AsyncIterable<unknown>) => {
    for await (const _ of bytes);
  };
  const job = containerJobSchema.parse({ kind: "container", image: "localhost/none:1" });
  const identity = { installation: "inst", run: "run_0", attempt: 1, fence: 1n };
  const deadlineAt = Date.now() + 60_000;
  const spec = { name: "x", identity, image: "i", command: undefined, args: undefined, env: {}, deadlineAt, job };
  const asked = [
    engine.start(spec, signal),
    read(engine.logs("0123", { follow: true, signal })),
    read(engine.file("0123", "/result/x", 10, signal)),
  ];
  await new Promise(setImmediate);
  stop.abort("stale-fence");
  for (const one of await Promise.allSettled(asked)) expect(one).toMatchObject({ reason: "stale-fence" });
  silent.close();
});
