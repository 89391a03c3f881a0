import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Job } from "kubernetes-models/batch/v1/Job";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { Role } from "kubernetes-models/rbac.authorization.k8s.io/v1/Role";
import { RoleBinding } from "kubernetes-models/rbac.authorization.k8s.io/v1/RoleBinding";
import { Namespace } from "kubernetes-models/v1/Namespace";
import { ServiceAccount } from "kubernetes-models/v1/ServiceAccount";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { containerJobSchema } from "../../src/domain/jobs/container.ts";
import type { ContainerEngine, ContainerSpec } from "../../src/handlers/containers/engine.ts";
import { createKubernetesEngine } from "../../src/handlers/containers/kubernetes/engine.ts";
import { jobOf } from "../../src/handlers/containers/kubernetes/job.ts";
import { runContainers } from "../../src/handlers/containers/run.ts";
import { executeHandler } from "../../src/handlers/execute.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { testContext } from "../handlers/context.ts";
import { until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { type Cluster, startCluster } from "./cluster.ts";

/** What is said to a cluster, and what is made of its answers. No cluster runs here: what it does with a Job, this cannot tell. */
let cluster: Cluster;
let engine: ContainerEngine;

beforeAll(async () => {
  cluster = await startCluster();
  const kubeconfig = join(makeTemporaryFolder("punctual-kube-"), "config");
  const config = {
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: cluster.url, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token: "worker-token" } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  engine = createKubernetesEngine({
    clock: systemClock,
    kubeconfig,
    namespace: "punctual-jobs",
    pullSecret: undefined,
  });
});
afterAll(() => cluster.close());
beforeEach(() => {
  cluster.jobs.clear();
  cluster.calls.length = 0;
  cluster.failWith = undefined;
  cluster.onMade = undefined;
});

const RUN = "run_01hv3c9t2re4a8m5k7n9p1q3sd";
const NOW = Date.UTC(2026, 10, 30, 12);
const workOf = (change: Record<string, unknown> = {}) =>
  containerJobSchema.parse({ kind: "container", image: "registry.example.com/team/app:1", stopGraceMs: 0, ...change });

function specOf(change: Record<string, unknown> = {}): ContainerSpec {
  return {
    name: "punctual-test-01hv3c9t2re4a8m5k7n9p1q3sd",
    identity: { installation: "test", run: RUN, attempt: 2, fence: 9n },
    image: "registry.example.com/team/app:1",
    command: ["/bin/app"],
    args: ["$(HOME)"],
    env: { A: "b $(C)" },
    deadlineAt: NOW + 90_000,
    job: workOf(change),
  };
}

async function attempt(change: Record<string, unknown> = {}, stop?: AbortSignal) {
  const ctx = testContext(stop === undefined ? {} : { signal: stop });
  Object.assign(ctx.run, { id: RUN, fence: 9n, attempt: 2 });
  const container = runContainers({
    engine,
    rules: { images: ["*"], networks: ["none"], maxMemoryMb: 512, maxCpu: 2, files: false, numericUsers: true },
    installation: "test",
    clock: systemClock,
    mostResultBytes: 1_000_000,
    adoptWithinMs: 60_000,
  });
  const outcome = await executeHandler({ container }, workOf(change), ctx, { secret: "x" });
  return { outcome, said: ctx.captured.join(""), result: ctx.staged[0] };
}

const theJob = () => [...cluster.jobs.values()][0]!;
const begun = () => until("the Job is made", () => cluster.jobs.size === 1);
function end(terminated: Record<string, unknown>, log = "") {
  Object.assign(theJob(), { state: { terminated }, podPhase: terminated.exitCode === 0 ? "Succeeded" : "Failed", log });
}

test("a Job is one Pod that is started once, with as few rights as can be, and what the API's schema takes", () => {
  const job = jobOf(specOf({ user: "1000:2000" }), { namespace: "punctual-jobs", pullSecret: "registry" }, NOW);
  new Job(job as never).validate();
  expect(job.metadata).toMatchObject({
    name: "punctual-test-01hv3c9t2re4a8m5k7n9p1q3sd",
    labels: { "punctual.installation": "test", "punctual.run": RUN, "punctual.fence": "9", "punctual.network": "none" },
  });
  expect(job.spec).toMatchObject({ backoffLimit: 0, activeDeadlineSeconds: 150, ttlSecondsAfterFinished: 86_400 });
  const pod = job.spec!.template.spec!;
  expect(pod).toMatchObject({
    restartPolicy: "Never",
    automountServiceAccountToken: false,
    securityContext: { runAsUser: 1000, runAsGroup: 2000, seccompProfile: { type: "RuntimeDefault" } },
    imagePullSecrets: [{ name: "registry" }],
  });
  expect(pod.containers[0]).toMatchObject({
    imagePullPolicy: "IfNotPresent",
    // Not to be filled in by Kubernetes.
    args: ["$$(HOME)"],
    env: [{ name: "A", value: "b $$(C)" }],
    resources: { limits: { cpu: "1000m", memory: "256Mi" } },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
  });
});

test("what is shipped for a cluster is what its schema takes, and the role has the rights that are used and no others", async () => {
  const documents = parseAllDocuments(readFileSync("ops/kubernetes/container-jobs.yaml", "utf8")).map((one) =>
    one.toJS(),
  );
  const models = { Namespace, ServiceAccount, Role, RoleBinding, NetworkPolicy };
  for (const one of documents) new models[one.kind as keyof typeof models](one).validate();
  const rules = documents.find((one) => one.kind === "Role").rules as { resources: string[]; verbs: string[] }[];
  const granted = rules.flatMap(({ resources, verbs }) => verbs.map((verb) => `${verb} ${resources[0]}`));

  const going = attempt({ result: { from: "stdout" } });
  await begun();
  end({ exitCode: 0, reason: "Completed" }, "done\n");
  await going;
  const stopped = new AbortController();
  const aborted = attempt({}, stopped.signal);
  await begun();
  theJob().state = { running: {} };
  stopped.abort("stale-fence");
  await aborted;
  await engine.ping();
  const used = new Set(
    cluster.calls
      .filter((call) => !call.path.startsWith("/version"))
      .map(({ method, path }) => {
        const [, kind, name, part] = /punctual-jobs\/(jobs|pods)(?:\/([^/]+))?(\/log)?$/.exec(path)!;
        const verb = { POST: "create", DELETE: "delete", GET: name === undefined ? "list" : "get" }[method];
        return `${verb} ${kind}${part ?? ""}`;
      }),
  );
  expect([...used].toSorted()).toEqual(granted.toSorted());
});

test("a Job that succeeds has its log for a result, is deleted with its Pod, and the cluster got every field that it was to get", async () => {
  const going = attempt({ result: { from: "stdout", mediaType: "text/csv" } });
  await begun();
  end({ exitCode: 0, reason: "Completed" }, "a,b\n");
  expect(await going).toMatchObject({
    outcome: { kind: "succeeded" },
    said: "a,b\n",
    result: { name: "stdout", mediaType: "text/csv", text: "a,b\n" },
  });
  const { body, authorization } = cluster.calls.find((call) => call.method === "POST")!;
  expect(authorization).toBe("Bearer worker-token");
  new Job(body as never).validate();
  // The client leaves out what its model does not know.
  const { spec } = body as { spec: { template: { spec: { containers: { env: { name: string }[] }[] } } } };
  expect(spec.template.spec.containers[0]!.env.map((one) => one.name)).toContain("PUNCTUAL_FENCE");
  const deleted = cluster.calls.find((call) => call.method === "DELETE" && call.path.includes("/jobs/"))!;
  expect(deleted.body).toMatchObject({
    propagationPolicy: "Foreground",
    preconditions: { uid: expect.stringMatching(/^uid-/) },
  });
  expect(cluster.jobs.size).toBe(0);
});

for (const [name, status, code, transient] of [
  ["an exit code", { terminated: { exitCode: 3, reason: "Error" } }, "container-exit", true],
  ["too little memory", { terminated: { exitCode: 137, reason: "OOMKilled" } }, "container-oom", false],
  [
    "a command that is not there",
    { terminated: { exitCode: 128, reason: "StartError", message: "no such file" } },
    "container-not-started",
    false,
  ],
  [
    "an image that cannot be fetched",
    { waiting: { reason: "ImagePullBackOff", message: "Back-off" } },
    "image-pull-failed",
    true,
  ],
  [
    "an image that may not be fetched",
    { waiting: { reason: "ErrImageNeverPull", message: "not present" } },
    "image-missing",
    false,
  ],
] as const) {
  test(`a Pod's word for ${name} is ${code}`, async () => {
    const going = attempt();
    await begun();
    Object.assign(theJob(), { state: status });
    expect((await going).outcome).toMatchObject({ kind: "failed", code, transient });
    expect(cluster.jobs.size).toBe(0);
  });
}

test("a Pod that was evicted is a lost container, and a cluster that does not answer is a reason to come again", async () => {
  const going = attempt();
  await begun();
  Object.assign(theJob(), { state: { waiting: { reason: "ContainerCreating" } }, podPhase: "Failed" });
  expect((await going).outcome).toMatchObject({ transient: true, code: "container-lost" });
  cluster.failWith = 500;
  expect((await attempt()).outcome).toMatchObject({ transient: true, code: "engine-unavailable" });
});

test("a Job whose attempt is stopped while it is made is deleted all the same", async () => {
  const stopped = new AbortController();
  cluster.onMade = () => stopped.abort("canceled");
  await attempt({}, stopped.signal);
  expect(cluster.calls.filter((call) => call.method === "POST")).toHaveLength(1);
  expect(cluster.jobs.size).toBe(0);
});

test("a Job goes on when its worker is to end, is found by its labels, and adopted with the same fence", async () => {
  const stop = new AbortController();
  const going = attempt({ result: { from: "stdout" } }, stop.signal);
  await begun();
  theJob().state = { running: {} };
  stop.abort("shutdown");
  expect((await going).outcome).toMatchObject({ kind: "detached" });
  expect(await engine.list("other")).toEqual([]);
  expect(await engine.list("test")).toMatchObject([
    { identity: { run: RUN, attempt: 2, fence: 9n }, phase: "running" },
  ]);
  const adopted = attempt({ result: { from: "stdout" } });
  end({ exitCode: 0 }, "whole\n");
  expect(await adopted).toMatchObject({ outcome: { kind: "succeeded" }, result: { text: "whole\n" } });
  expect(cluster.calls.filter((call) => call.method === "POST")).toHaveLength(1);
});

test("a Job of an attempt before is deleted before the next one is made, and a newer attempt's is left alone", async () => {
  await engine.start(
    {
      ...specOf(),
      identity: { ...specOf().identity, installation: "test", fence: 8n },
      name: `punctual-test-${RUN.slice(4)}`,
    },
    new AbortController().signal,
  );
  const going = attempt();
  await until("the next is made", () => theJob()?.job.metadata.uid !== undefined && labelOf("punctual.fence") === "9");
  end({ exitCode: 0 });
  expect((await going).outcome).toEqual({ kind: "succeeded" });
  await engine.start(
    { ...specOf(), identity: { ...specOf().identity, fence: 10n }, name: `punctual-test-${RUN.slice(4)}` },
    new AbortController().signal,
  );
  expect((await attempt()).outcome).toMatchObject({ transient: true, code: "container-name-taken" });
  expect(labelOf("punctual.fence")).toBe("10");
});

const labelOf = (key: string) => (theJob()?.job.metadata.labels as Record<string, string> | undefined)?.[key];
