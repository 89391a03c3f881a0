import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { readInstallation } from "../../src/authority/containers/installation.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { createDockerEngine } from "../../src/handlers/containers/docker/engine.ts";
import type { ContainerEngine, FoundContainer } from "../../src/handlers/containers/engine.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { readId } from "../../src/kernel/ids.ts";
import { IMAGE, type Podman, podmanAvailable, startPodman } from "../support/podman.ts";
import { type ChildNode, countRuns, type Node, spawnNode, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

/** Workers and what becomes of their containers: one engine, and for each test an installation of its own on it. */
if (podmanAvailable) {
  let podman: Podman;
  let engine: ContainerEngine;
  let world: World;
  let installation: string;
  let nodes: (Node | ChildNode)[];

  beforeAll(async () => {
    podman = await startPodman();
    engine = createDockerEngine({
      address: { socketPath: podman.socketPath },
      clock: systemClock,
      accounts: new Map(),
    });
  });
  afterAll(() => podman.stop());
  beforeEach(async () => {
    world = await createWorld();
    installation = await readInstallation(world.db);
    nodes = [];
  });
  afterEach(async () => {
    for (const node of nodes) await node.stop();
    await world.check();
    await world.close();
  });

  const settings = () => ({
    PUNCTUAL_CONTAINER_ENGINE: "docker",
    PUNCTUAL_CONTAINER_HOST: `unix://${podman.socketPath}`,
    PUNCTUAL_CONTAINER_IMAGES: "localhost/*",
    PUNCTUAL_GRACE_MS: "0",
  });

  async function start(roles: ("worker" | "sweeper")[], config: Record<string, string> = {}): Promise<Node> {
    const node = await startNode({ roles, leases: "short", url: world.url, config: { ...settings(), ...config } });
    nodes.push(node);
    return node;
  }

  /** One run of a job whose container lives until `/tmp/go` is there. */
  async function bear(job: Record<string, unknown> = {}): Promise<void> {
    const id = await world.newSchedule({
      job: {
        kind: "container",
        image: IMAGE,
        command: ["/bin/sh", "-c", "echo attempt $PUNCTUAL_ATTEMPT; while ! test -e /tmp/go; do sleep 0.05; done"],
        result: { from: "stdout" },
        stopGraceMs: 0,
        ...job,
      } as never,
      retry: { maxAttempts: 3, maxElapsedMs: 600_000, baseMs: 1, capMs: 10 },
      maxRuns: 1,
    });
    await world.makeDue(id);
    await world.materialize([id]);
  }

  const containers = () => engine.list(installation);
  async function running(): Promise<FoundContainer> {
    let found: FoundContainer | undefined;
    await until("a container runs", async () => {
      found = (await containers()).find((one) => one.phase === "running");
      return found !== undefined;
    });
    return found!;
  }
  const letGo = (one: FoundContainer) => podman.letGo(one.id);
  const ended = (state: string) =>
    until(
      `the run is ${state}`,
      async () => (await countRuns(world.admin))[state] === 1,
      20_000,
      () => attempts(),
    );
  const attempts = async () =>
    (
      await world.admin.query(
        "select n, outcome, error_code, detached_at is not null as detached from attempt order by n",
      )
    ).rows;
  const sizeOfResult = async () => (await world.admin.query("select result_size from run")).rows[0].result_size;

  test("a run's container is run by a worker, and its stdout is the run's result", async () => {
    await bear();
    await start(["worker"]);
    await letGo(await running());
    await ended("succeeded");
    expect(await sizeOfResult()).toBe(BigInt("attempt 1\n".length));
    expect(await containers()).toEqual([]);
  });

  test("a run that is canceled has no container any more", async () => {
    await bear();
    await start(["worker"]);
    const { identity } = await running();
    await cancelRuns(world.authority, [
      { tenantId: world.tenantId, runId: readId("run", identity.run)!, actor: "test" },
    ]);
    await ended("canceled");
    expect(await containers()).toEqual([]);
  });

  test("a worker that is shut down lets its container go on; the next worker adopts the attempt, and its result counts", async () => {
    await bear();
    const first = await start(["worker"]);
    const container = await running();
    await first.stop();
    expect(await attempts()).toEqual([{ n: 1, outcome: null, error_code: null, detached: true }]);
    const second = await start(["worker"]);
    await until("it is adopted", async () => {
      const { rows } = await world.admin.query("select worker from live_run");
      return rows[0].worker === second.core.processName;
    });
    expect(await running()).toEqual(container);
    await letGo(container);
    await ended("succeeded");
    expect(await attempts()).toEqual([{ n: 1, outcome: null, error_code: null, detached: true }]);
    expect(await containers()).toEqual([]);
  });

  test("a container that has ended while no worker was there is adopted all the same", async () => {
    await bear();
    const first = await start(["worker"]);
    const container = await running();
    await first.stop();
    await letGo(container);
    await until("it has ended", async () => (await containers())[0]?.phase === "ended");
    await start(["worker"]);
    await ended("succeeded");
    expect(await sizeOfResult()).toBe(BigInt("attempt 1\n".length));
  });

  test("the container of a worker that was killed is gone before the next attempt's begins", async () => {
    await bear();
    const child = await spawnNode({ roles: ["worker"], leases: "short", url: world.url, config: settings() });
    nodes.push(child);
    const old = await running();
    await child.kill();
    expect((await running()).id).toBe(old.id);
    await start(["worker", "sweeper"]);
    let newer: FoundContainer | undefined;
    await until("the next attempt's runs", async () => {
      const found = await containers();
      // Never two at once, whenever one looks.
      expect(found.length).toBeLessThanOrEqual(1);
      newer = found.find((one) => one.phase === "running" && one.identity.attempt === 2);
      return newer !== undefined;
    });
    expect(newer!.identity.fence).toBeGreaterThan(old.identity.fence);
    expect(await engine.phase(old.id)).toBeUndefined();
    await letGo(newer!);
    await ended("succeeded");
    expect(await attempts()).toMatchObject([
      { n: 1, error_code: "lease-expired" },
      { n: 2, error_code: null },
    ]);
  });

  test("what attempts have left behind is cleared away, and neither a live attempt's container nor another installation's", async () => {
    await bear();
    const worker = await start(["worker"]);
    const live = await running();
    const make = async (of: Partial<FoundContainer["identity"]>) => {
      const identity = { ...live.identity, run: "run_00000000000000000000000001", fence: 7n, ...of };
      const labels = Object.entries({
        installation: identity.installation,
        run: identity.run,
        attempt: identity.attempt,
        fence: identity.fence,
      }).flatMap(([key, value]) => ["--label", `punctual.${key}=${value}`]);
      const limits = ["--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64", "--network", "none"];
      return (await podman.say("run", "--detach", ...limits, ...labels, IMAGE, "/bin/sleep", "60")).trim();
    };
    // Of a run that nobody knows, of the live run's attempt before, and of somebody else.
    const [unknown, before, others] = [
      await make({}),
      await make({ run: live.identity.run, fence: live.identity.fence - 1n }),
      await make({ installation: "another" }),
    ] as [string, string, string];
    await until("the leftovers are gone", async () => (await containers()).length === 1);
    expect((await containers())[0]).toEqual(live);
    expect(await engine.phase(unknown)).toBeUndefined();
    expect(await engine.phase(before)).toBeUndefined();
    expect(await engine.phase(others)).toMatchObject({ kind: "running" });
    const metrics = await worker.core.metrics.registry.metrics();
    expect(metrics).toContain("punctual_containers_cleared_total 2");
    await letGo(live);
    await ended("succeeded");
    await engine.stop(others, 0);
    await engine.remove(others);
  });

  test("a worker refuses an image that is not on its list, whatever was accepted before", async () => {
    await bear();
    await start(["worker"], { PUNCTUAL_CONTAINER_IMAGES: "registry.example.com/*" });
    await ended("failed");
    expect(await attempts()).toMatchObject([{ error_code: "image-not-allowed" }]);
  });
}
