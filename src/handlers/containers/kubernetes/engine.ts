import type { V1Job, V1Pod } from "@kubernetes/client-node";
import { installationLabel, readLabels } from "../../../domain/containers/identity.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { messageOf } from "../../../kernel/errors.ts";
import { JobFailure, permanentFailure } from "../../outcome.ts";
import { abortable } from "../abortable.ts";
import { type ContainerEngine, engineUnavailable, type FoundContainer } from "../engine.ts";
import { CONFLICT, connectCluster } from "./cluster.ts";
import { CONTAINER, type JobPlace, jobOf } from "./job.ts";
import { phaseKindOf, phaseOf } from "./pods.ts";

/** A node's log of a container is cut in pieces of 10 MiB unless the cluster is told otherwise, and has more than the bytes. */
const MOST_STDOUT_BYTES = 256 * 1024;
const PAGE = 200;
const GONE_WITHIN_MS = 30_000;
const LOOK_MS = 250;

/**
 * Containers as Kubernetes Jobs of one Pod. A Job is deleted in the foreground, so its name is free when its Pod has
 * ended, and not before. Files cannot be taken out of a Pod that has ended; both streams come as one.
 */
export function createKubernetesEngine(
  options: JobPlace & { clock: Clock; kubeconfig: string | undefined },
): ContainerEngine {
  const { clock, namespace } = options;
  const cluster = connectCluster(options.kubeconfig, clock);
  const { batch, core, call } = cluster;

  /** The very Job of this id, not another of its name. */
  async function readJob(id: string): Promise<V1Job | undefined> {
    const [name, uid] = id.split("/") as [string, string];
    const job = await call((limits) => batch.readNamespacedJob({ namespace, name }, limits));
    return job?.metadata?.uid === uid ? job : undefined;
  }

  async function podsOf(id: string): Promise<V1Pod[]> {
    const labelSelector = `batch.kubernetes.io/controller-uid=${id.split("/")[1]}`;
    return (await call((limits) => core.listNamespacedPod({ namespace, labelSelector }, limits)))?.items ?? [];
  }

  async function end(id: string, graceMs: number): Promise<void> {
    const [name, uid] = id.split("/") as [string, string];
    // None at all would mean not to wait for the node, which may be running it still.
    const gracePeriodSeconds = Math.max(1, Math.ceil(graceMs / 1000));
    for (const { metadata, status } of await podsOf(id)) {
      if (status?.phase === "Succeeded" || status?.phase === "Failed") continue;
      await call((limits) =>
        core.deleteNamespacedPod({ namespace, name: metadata!.name!, gracePeriodSeconds }, limits),
      );
    }
    await deleteJob(name, uid);
    const overMs = clock.monotonic() + graceMs + GONE_WITHIN_MS;
    while ((await readJob(id)) !== undefined) {
      if (clock.monotonic() > overMs) throw engineUnavailable(`the Job ${name} does not end`);
      await clock.sleep(LOOK_MS);
    }
  }

  async function deleteJob(name: string, uid: string): Promise<void> {
    const body = { propagationPolicy: "Foreground", preconditions: { uid } };
    try {
      await call((limits) => batch.deleteNamespacedJob({ namespace, name, body }, limits));
    } catch (error) {
      // Another Job has the name by now.
      if (!(error instanceof JobFailure && error.code === CONFLICT)) throw error;
    }
  }

  return {
    mostStdoutBytes: MOST_STDOUT_BYTES,

    async ping() {
      const version = await call((limits) => cluster.version.getCode({}, limits));
      // It is asked for what may be asked, too: a role that may not list Jobs is found out before the first one.
      await call((limits) => batch.listNamespacedJob({ namespace, limit: 1 }, limits));
      return `Kubernetes ${version?.gitVersion ?? "of an unknown version"}`;
    },

    async find(name) {
      const job = await call((limits) => batch.readNamespacedJob({ namespace, name }, limits));
      if (job === undefined) return undefined;
      const found = foundOf(job);
      if (found === undefined)
        throw permanentFailure("container-name-taken", `the Job ${name} is none of this installation's`);
      return found;
    },

    async list(installation) {
      const found: FoundContainer[] = [];
      let next: string | undefined;
      do {
        const request = { namespace, labelSelector: installationLabel(installation), limit: PAGE };
        const page = await call((limits) =>
          batch.listNamespacedJob(next === undefined ? request : { ...request, _continue: next }, limits),
        );
        found.push(...(page?.items ?? []).flatMap((job) => foundOf(job) ?? []));
        next = page?.metadata?._continue || undefined;
      } while (next !== undefined);
      return found;
    },

    async start(spec, signal) {
      const body = jobOf(spec, options, clock.now());
      try {
        signal.throwIfAborted();
        // Not to be broken off: nobody would end a Job that was made all the same. Who is told to stop meanwhile ends it then.
        const job = await call((limits) => batch.createNamespacedJob({ namespace, body }, limits));
        if (job === undefined) throw permanentFailure("container-not-started", `there is no namespace ${namespace}`);
        return { kind: "started", id: idOf(job) };
      } catch (error) {
        if (error instanceof JobFailure && error.code === CONFLICT) return { kind: "name-taken" };
        throw error;
      }
    },

    async phase(id) {
      const job = await readJob(id);
      return job && phaseOf(job, await podsOf(id));
    },

    async *logs(id, { follow, signal }) {
      const [pod] = await podsOf(id);
      if (pod === undefined) return;
      const query = new URLSearchParams({ container: CONTAINER, follow: String(follow) });
      const path = `/api/v1/namespaces/${namespace}/pods/${pod.metadata!.name}/log?${query}`;
      const stream = await cluster.openLog(path, signal);
      if (stream === undefined) return;
      try {
        yield* abortable(stream, signal, asStdout);
      } catch (error) {
        signal.throwIfAborted();
        throw engineUnavailable(messageOf(error), error);
      }
      signal.throwIfAborted();
    },

    // biome-ignore lint/correctness/useYield: there is nothing to be had.
    async *file(_id, path) {
      throw permanentFailure("result-missing", `${path} cannot be had: a Pod that has ended gives out no files`);
    },

    stop: end,
    remove: (id) => end(id, 0),
  };
}

async function* asStdout(stream: AsyncIterable<Uint8Array>) {
  for await (const bytes of stream) yield { stream: "stdout" as const, bytes };
}

/** A name can be given anew; with the uid it means this one. */
const idOf = ({ metadata }: V1Job) => `${metadata!.name}/${metadata!.uid}`;

function foundOf(job: V1Job): FoundContainer | undefined {
  const identity = readLabels(job.metadata?.labels);
  return identity && { id: idOf(job), name: job.metadata!.name!, identity, phase: phaseKindOf(job) };
}
