import { afterAll, beforeAll, expect, test } from "vitest";
import type { Payload } from "../../src/domain/definition.ts";
import { type ContainerJob, containerJobSchema } from "../../src/domain/jobs/container.ts";
import { knowSecrets } from "../../src/domain/secrets/known.ts";
import { createDockerEngine } from "../../src/handlers/containers/docker/engine.ts";
import type { ContainerEngine } from "../../src/handlers/containers/engine.ts";
import { runContainers } from "../../src/handlers/containers/run.ts";
import type { JobContext } from "../../src/handlers/context.ts";
import { executeHandler } from "../../src/handlers/execute.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { mintId, showId } from "../../src/kernel/ids.ts";
import { testContext } from "../handlers/context.ts";
import { IMAGE, type Podman, podmanAvailable, startPodman } from "../support/podman.ts";
import { until } from "../support/system.ts";
import { type Registry, startRegistry } from "./registry.ts";

/** One container at a time, on a real engine: what it is given, what it may do, and how it ends. */
if (podmanAvailable) {
  let podman: Podman;
  let engine: ContainerEngine;
  let registry: Registry;

  beforeAll(async () => {
    registry = await startRegistry();
    podman = await startPodman({ insecureRegistry: registry.host });
    engine = engineAt(podman.socketPath, "pass");
  });
  afterAll(async () => {
    await podman.stop();
    await registry.close();
  });

  const engineAt = (socketPath: string, password: string, clock = systemClock) =>
    createDockerEngine({
      address: { socketPath },
      clock,
      accounts: new Map([[registry.host, { username: "robot", password }]]),
    });

  type Job = Omit<Partial<ContainerJob>, "resources"> & { resources?: Partial<ContainerJob["resources"]> };
  type Attempt = {
    on?: ContainerEngine;
    adoptWithinMs?: number;
    /** Is given what the container says while it says it. */
    listen?: (said: readonly string[]) => void;
    job?: Job;
    payload?: Payload;
    fence?: bigint;
    run?: string;
    installation?: string;
    stop?: AbortSignal;
    /** Where a result goes; kept in memory unless said. */
    output?: JobContext["output"];
  };

  const newRun = () => showId("run", mintId(Date.now(), 0));

  /** One attempt, from its grant to its outcome, as a worker would have it. */
  async function attempt(shell: string, options: Attempt = {}) {
    const {
      job = {},
      payload = {},
      fence = 1n,
      run = newRun(),
      installation = "test",
      stop,
      on = engine,
      listen,
      adoptWithinMs = 60_000,
      output,
    } = options;
    const ctx = testContext(stop === undefined ? {} : { signal: stop });
    if (output !== undefined) ctx.output = output;
    listen?.(ctx.captured);
    Object.assign(ctx.run, { id: run, fence, attempt: Number(fence) });
    const container = runContainers({
      engine: on,
      rules: {
        images: ["localhost/*", "127.0.0.1:*/team/*"],
        networks: ["none"],
        maxMemoryMb: 512,
        maxCpu: 2,
        files: true,
        numericUsers: false,
      },
      installation,
      clock: systemClock,
      mostResultBytes: 1_000_000,
      adoptWithinMs,
    });
    const work = containerJobSchema.parse({
      kind: "container",
      image: IMAGE,
      command: ["/bin/sh", "-c", shell],
      stopGraceMs: 1_000,
      ...job,
    });
    const secrets = knowSecrets(payload.secret === undefined ? [] : [{ path: ["secret"], value: payload.secret }]);
    const outcome = await executeHandler({ container }, work, ctx, payload, secrets);
    return { outcome, said: ctx.captured.join(""), result: ctx.staged[0] };
  }

  const isRunning = async (run: string) => (await listed(run)).some((one) => one.phase === "running");
  const listed = async (run: string) => (await engine.list("test")).filter((one) => one.identity.run === run);

  // The first: those of other tests are kept open for some seconds.
  test("a result that nobody takes leaves no connection to the engine behind", async () => {
    const connections = () => process.getActiveResourcesInfo().filter((one) => one === "PipeWrap").length;
    const before = connections();
    const job = { result: { from: "file", path: "/result/x", mediaType: "text/plain" } } as const;
    const output = () => Promise.reject(new Error("the attempt may not upload any more"));
    const { outcome } = await attempt("yes | head -c 900000 > /result/x", { job, output });
    expect(outcome).toMatchObject({ code: "handler-error" });
    await until("all are closed", () => connections() <= before);
  });

  test("a container that succeeds has its stdout for a result, its streams in the log, and leaves nothing behind", async () => {
    const run = newRun();
    const job = { result: { from: "stdout", mediaType: "text/csv" } } as const;
    const done = await attempt("echo a,b; echo warned >&2; echo c,d", { job, run });
    expect(done.outcome).toMatchObject({ kind: "succeeded" });
    expect(done.result).toEqual({ name: "stdout", mediaType: "text/csv", text: "a,b\nc,d\n" });
    expect(done.said.split("\n").toSorted()).toEqual(["", "a,b", "c,d", "warned"]);
    expect(await listed(run)).toEqual([]);
    expect(await podman.say("volume", "ls", "--quiet")).toBe("");
  });

  test("a result file is taken out of the container when it has ended, and its volume goes with it", async () => {
    const job = { result: { from: "file", path: "/result/out/report.csv", mediaType: "text/csv" } } as const;
    const done = await attempt("mkdir /result/out && echo 1,2 > /result/out/report.csv; echo log", { job });
    expect(done).toMatchObject({ outcome: { kind: "succeeded" }, said: "log\n" });
    expect(done.result).toEqual({ name: "report.csv", mediaType: "text/csv", text: "1,2\n" });
    expect(await podman.say("volume", "ls", "--quiet")).toBe("");
  });

  test("a result that is missing, no file, or too large is a failure, and none that a retry would mend", async () => {
    const job = { result: { from: "file", path: "/result/x", mediaType: "text/plain" } } as const;
    const failed = (code: string) => ({ outcome: { kind: "failed", transient: false, code }, result: undefined });
    expect(await attempt("true", { job })).toMatchObject(failed("result-missing"));
    expect(await attempt("mkdir /result/x", { job })).toMatchObject(failed("result-missing"));
    expect(await attempt("yes | head -c 1000001 > /result/x", { job })).toMatchObject(failed("result-too-large"));
  });

  test("a container without end of words is cut off where they were to be the result, and let be where they are a log", async () => {
    const flood = "yes 0123456789012345678901234567890123456789 | head -c 4000000";
    const job = { result: { from: "stdout", mediaType: "text/plain" } } as const;
    const run = newRun();
    const cut = await attempt(`${flood}; sleep 30`, { job, run });
    expect(cut.outcome).toMatchObject({ kind: "failed", transient: false, code: "result-too-large" });
    expect(await listed(run)).toEqual([]);
    const log = await attempt(`${flood}; echo the end`);
    expect(log.outcome).toEqual({ kind: "succeeded" });
    expect(log.said.length).toBeGreaterThan(1_000_000);
  });

  test("a container is told which attempt it is of, and gets its payload and what is filled in from it", async () => {
    const run = newRun();
    const job: Job = {
      args: ["zero", "{{payload.customer.id}}", "{{run.attempt}}"],
      env: { TOKEN: "Bearer {{payload.secret}}" },
      workdir: "/tmp",
      result: { from: "stdout", mediaType: "text/plain" },
    };
    const payload = { customer: { id: 7 }, secret: "hush-hush-hush" };
    const { result } = await attempt('pwd; echo "$1 $2"; env', { job, payload, run, fence: 3n });
    const lines = result!.text.split("\n");
    expect(lines.slice(0, 2)).toEqual(["/tmp", "7 3"]);
    expect(lines).toEqual(
      expect.arrayContaining([
        `PUNCTUAL_RUN=${run}`,
        "PUNCTUAL_ATTEMPT=3",
        "PUNCTUAL_FENCE=3",
        "PUNCTUAL_SCHEDULED_AT=2026-11-29T18:00:00.000Z",
        `PUNCTUAL_IDEMPOTENCY_KEY=${run}`,
        `PUNCTUAL_PAYLOAD=${JSON.stringify(payload)}`,
        "TOKEN=Bearer hush-hush-hush",
      ]),
    );
  });

  test("what is filled in cannot be more than one argument, nor run as anything else", async () => {
    const job: Job = { args: ["zero", "{{payload.text}}"], result: { from: "stdout", mediaType: "text/plain" } };
    const text = '"; echo pwned; $(echo pwned) `echo pwned` {{run.id}}';
    expect((await attempt('echo "$#"; echo "$1"', { job, payload: { text } })).result?.text).toBe(`1\n${text}\n`);
    const nul = await attempt("true", { job, payload: { text: "a\0b" } });
    expect(nul.outcome).toMatchObject({ transient: false, code: "container-not-startable" });
  });

  test("a container has no network, no capabilities, no way to more of them, and cannot write but to /tmp", async () => {
    const job: Job = { user: "1000:1000", result: { from: "stdout", mediaType: "text/plain" } };
    const shell = `ip -o link | grep -c .; wget -T 2 -q -O- http://1.1.1.1 || echo no way out
      grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status; id -u
      touch /bin/x 2>/dev/null || echo read-only; echo ok > /tmp/x && cat /tmp/x
      head -c 70000000 /dev/zero > /tmp/big 2>/dev/null || echo tmp is full
      sh -c "ulimit -n"`;
    expect((await attempt(shell, { job })).result?.text.split("\n")).toEqual([
      "1",
      "no way out",
      "CapEff:\t0000000000000000",
      "CapBnd:\t0000000000000000",
      "NoNewPrivs:\t1",
      "1000",
      "read-only",
      "ok",
      "tmp is full",
      "1024",
      "",
    ]);
  });

  test("an exit code is a failure that may be tried again, unless the job says that it is for good", async () => {
    const { outcome } = await attempt("echo cannot reach it with hush-hush-hush >&2; exit 3", {
      payload: { secret: "hush-hush-hush" },
    });
    expect(outcome).toEqual({
      kind: "failed",
      transient: true,
      code: "container-exit",
      message: "the container ended with exit code 3. It said last: cannot reach it with [secret]",
    });
    // Half a secret is one still.
    const long = Array.from({ length: 400 }, (_, i) => i).join("");
    const cut = await attempt('echo "$1" >&2; exit 3', {
      payload: { secret: long },
      job: { args: ["", "{{payload.secret}}"] },
    });
    expect(cut.outcome).toMatchObject({ message: "the container ended with exit code 3. It said last: [secret]" });
    const forGood = await attempt("exit 4", { job: { permanentExitCodes: [4] } });
    expect(forGood.outcome).toMatchObject({ transient: false, code: "container-exit" });
    expect((await attempt("nothing-of-that-name")).outcome).toMatchObject({
      transient: false,
      code: "container-not-started",
    });
    expect((await attempt("", { job: { command: ["/no/such/program"] } })).outcome).toMatchObject({
      transient: false,
      code: "container-not-started",
    });
  });

  test("a container that takes more memory than it has is killed, and the failure names its limit", async () => {
    const greedy = await attempt('x="$(yes 0123456789 | head -c 100000000)"; echo survived', {
      job: { resources: { memoryMb: 32 } },
    });
    // Podman on cgroups v1 cannot say who has killed it.
    expect(greedy.outcome).toMatchObject({ kind: "failed", code: expect.stringMatching(/^container-(oom|killed)$/) });
    expect(greedy.outcome).toMatchObject({ message: expect.stringContaining("its memory limit is 32 MiB") });
    expect(greedy.said).toBe("");
  });

  test("an image that is not on the list is never asked for; one that is not there, and may not be fetched, is a failure for good", async () => {
    const outcomeOf = async (job: Job) => (await attempt("true", { job })).outcome;
    expect(await outcomeOf({ image: "registry.example.com/busybox:1" })).toMatchObject({
      transient: false,
      code: "image-not-allowed",
    });
    expect(await outcomeOf({ image: "localhost/none:1", pull: "never" })).toMatchObject({
      transient: false,
      code: "image-missing",
    });
    expect(await outcomeOf({ network: "bridge" })).toMatchObject({ transient: false, code: "container-not-allowed" });
  });

  test("an image that is missing is fetched from its registry by the operator's account, also by its digest", async () => {
    const folder = `${podman.socketPath}.image`;
    await podman.say("save", "--quiet", "--format", "oci-dir", "--output", folder, IMAGE);
    const digest = registry.serve(folder);
    const image = `${registry.host}/team/app`;
    const outcomeOf = async (job: Job, on?: ContainerEngine) =>
      (await attempt("true", { job, ...(on === undefined ? {} : { on }) })).outcome;
    const manifests = () => registry.asked.filter((one) => one.path.includes("/manifests/")).length;

    const stranger = engineAt(podman.socketPath, "wrong");
    expect(await outcomeOf({ image: `${image}:1` }, stranger)).toMatchObject({
      transient: true,
      code: "image-pull-failed",
    });
    expect(await outcomeOf({ image: `${image}:1` })).toEqual({ kind: "succeeded" });
    expect(registry.asked.at(-1)).toMatchObject({ user: "robot:pass" });
    const asked = manifests();
    expect(await outcomeOf({ image: `${image}:1` })).toEqual({ kind: "succeeded" });
    expect(await outcomeOf({ image: `${image}:1`, pull: "never" })).toEqual({ kind: "succeeded" });
    expect(manifests()).toBe(asked);
    expect(await outcomeOf({ image: `${image}:1`, pull: "always" })).toEqual({ kind: "succeeded" });
    expect(manifests()).toBeGreaterThan(asked);
    expect(await outcomeOf({ image: `${image}@${digest}`, pull: "always" })).toEqual({ kind: "succeeded" });
    const missing = { transient: false, code: "image-missing" };
    expect(await outcomeOf({ image: `${image}:2` })).toMatchObject(missing);
    expect(await outcomeOf({ image: `${image}@sha256:${"0".repeat(64)}` })).toMatchObject(missing);
  });

  for (const { reason, trap, says } of [
    { reason: "canceled", trap: "echo goodbye; exit 0", says: "ready\ngoodbye\n" },
    { reason: "deadline", trap: "", says: "ready\n" },
    { reason: "lease-doubtful", trap: "", says: "ready\n" },
    { reason: "stale-fence", trap: "echo too late", says: "ready\n" },
    // Where nobody would come to adopt it.
    { reason: "shutdown", trap: "echo goodbye; exit 0", says: "ready\ngoodbye\n" },
  ]) {
    test(`a container is stopped and removed when its attempt is told: ${reason}`, async () => {
      const stop = new AbortController();
      const run = newRun();
      let said: readonly string[] = [];
      const going = attempt(`trap '${trap}' TERM; echo ready; while true; do sleep 0.05; done`, {
        run,
        stop: stop.signal,
        adoptWithinMs: 0,
        listen: (heard) => (said = heard),
      });
      await until("it is ready", () => said.join("") === "ready\n");
      stop.abort(reason);
      expect((await going).outcome).toMatchObject({ kind: "failed", transient: true, code: "aborted" });
      expect((await going).said).toBe(says);
      expect(await listed(run)).toEqual([]);
    });
  }

  test("a container goes on when its worker is to end; who comes with the same fence finds it, reads it from the beginning, and ends its attempt", async () => {
    const stop = new AbortController();
    const run = newRun();
    const shell = "echo one; while ! test -e /tmp/go; do sleep 0.05; done; echo two";
    const job: Job = { result: { from: "stdout", mediaType: "text/plain" } };
    const going = attempt(shell, { run, job, stop: stop.signal });
    await until("it runs", () => isRunning(run));
    stop.abort("shutdown");
    expect((await going).outcome).toEqual({ kind: "detached", callbackWithinMs: 60_000 });
    const [left] = await listed(run);
    expect(left?.phase).toBe("running");
    const adopted = attempt(shell, { run, job });
    await podman.letGo(left!.id);
    expect(await adopted).toMatchObject({
      outcome: { kind: "succeeded" },
      said: "one\ntwo\n",
      result: { text: "one\ntwo\n" },
    });
  });

  test("an attempt ends what the attempt before has left, and one that is over does not touch the newer one's container", async () => {
    const run = newRun();
    const stops = [new AbortController(), new AbortController()];
    const [old, newer] = stops as [AbortController, AbortController];
    const first = attempt("while true; do sleep 0.05; done", { run, fence: 1n, stop: old.signal });
    await until("it runs", () => isRunning(run));
    const [left] = await listed(run);
    // The first one's worker is paused, say: nobody has told it anything.
    const second = attempt("while true; do sleep 0.05; done", { run, fence: 2n, stop: newer.signal });
    await until("the second runs", async () => (await listed(run))[0]?.identity.fence === 2n);
    expect(await listed(run)).toHaveLength(1);
    expect(await engine.phase(left!.id)).toBeUndefined();
    // Whatever it makes of the end of its container: nobody goes by what a stale fence says.
    expect((await first).outcome).toMatchObject({ kind: "failed" });
    expect((await attempt("true", { run, fence: 1n })).outcome).toMatchObject({
      transient: true,
      code: "container-name-taken",
    });
    expect((await listed(run))[0]?.identity.fence).toBe(2n);
    newer.abort("stale-fence");
    await second;
  });

  test("an engine gives a name once, also to two who ask at the same time", async () => {
    const run = newRun();
    const spec = {
      name: `punctual-test-${run.slice(4)}`,
      identity: { installation: "test", run, attempt: 1, fence: 1n },
      image: IMAGE,
      command: ["/bin/sleep", "60"],
      args: undefined,
      env: {},
      deadlineAt: 0,
      job: containerJobSchema.parse({ kind: "container", image: IMAGE }),
    };
    const { signal } = new AbortController();
    const started = await Promise.all([engine.start(spec, signal), engine.start(spec, signal)]);
    expect(started.map((one) => one.kind).toSorted()).toEqual(["name-taken", "started"]);
    const [one] = await listed(run);
    await engine.stop(one!.id, 0);
    await engine.remove(one!.id);
  });

  test("two installations on one engine do not see each other's containers", async () => {
    const stop = new AbortController();
    const run = newRun();
    const going = attempt("while true; do sleep 0.05; done", { run, installation: "other", stop: stop.signal });
    await until("it runs", async () => (await engine.list("other"))[0]?.phase === "running");
    expect((await attempt("true", { run })).outcome).toEqual({ kind: "succeeded" });
    expect(await listed(run)).toEqual([]);
    expect(await engine.list("other")).toHaveLength(1);
    stop.abort("stale-fence");
    await going;
    expect(await engine.list("other")).toEqual([]);
  });

  test("an engine that takes calls and answers none costs an attempt its end by the deadline, and nothing hangs on it", async () => {
    // As patient as the real one, and fifteen times as fast.
    const hasty = { ...systemClock, after: (ms: number, fn: () => void) => systemClock.after(ms / 15, fn) };
    const on = engineAt(podman.socketPath, "pass", hasty);
    const stop = new AbortController();
    const run = newRun();
    const going = attempt("while true; do sleep 0.05; done", { run, on, stop: stop.signal });
    await until("it runs", () => isRunning(run));
    podman.freeze();
    stop.abort("deadline");
    expect((await going).outcome).toMatchObject({ kind: "failed", transient: true, code: "aborted" });
    expect((await attempt("true", { on })).outcome).toMatchObject({ transient: true, code: "engine-unavailable" });
    podman.thaw();
    // What could not be removed is in the way of nobody.
    expect((await attempt("true", { run, fence: 2n })).outcome).toEqual({ kind: "succeeded" });
    expect(await listed(run)).toEqual([]);
  });

  test("a container outlives a restart of its engine, and is followed to its end; without an engine nothing is started", async () => {
    const run = newRun();
    const job: Job = { result: { from: "stdout", mediaType: "text/plain" } };
    let said: readonly string[] = [];
    const going = attempt("echo one; while ! test -e /tmp/go; do sleep 0.05; done; echo two", {
      run,
      job,
      listen: (heard) => (said = heard),
    });
    await until("it is followed", () => said.join("") === "one\n");
    const [left] = await listed(run);
    await podman.kill();
    const away = await attempt("true");
    expect(away.outcome).toMatchObject({ kind: "failed", transient: true, code: "engine-unavailable" });
    await podman.start();
    await podman.letGo(left!.id);
    expect(await going).toMatchObject({
      outcome: { kind: "succeeded" },
      said: "one\ntwo\n",
      result: { text: "one\ntwo\n" },
    });
  });

  test("a long log is read to its end though the engine was away when it came", async () => {
    const run = newRun();
    let said: readonly string[] = [];
    const line = "0123456789".repeat(20);
    const going = attempt(`yes ${line} | head -n 3000; while ! test -e /tmp/go; do sleep 0.05; done; echo the end`, {
      run,
      listen: (heard) => (said = heard),
    });
    await until("it is followed", () => said.join("").length === 603_000);
    const [left] = await listed(run);
    await podman.kill();
    await podman.letGo(left!.id);
    await podman.start();
    expect((await going).outcome).toEqual({ kind: "succeeded" });
    expect(said.join("")).toBe(`${`${line}\n`.repeat(3_000)}the end\n`);
  });
}
