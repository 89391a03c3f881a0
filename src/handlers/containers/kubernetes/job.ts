import type { V1Container, V1Job } from "@kubernetes/client-node";
import { labelsOf } from "../../../domain/containers/identity.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { ContainerSpec } from "../engine.ts";

export type JobPlace = { namespace: string; pullSecret: string | undefined };

export const CONTAINER = "job";
/** What the network policies of ops/kubernetes/container-jobs.yaml go by. */
const NETWORK_LABEL = "punctual.network";
/** The cluster is the last to end it: by then its worker has, or is not there any more. */
const DEADLINE_MARGIN_S = 60;
/** What nobody has cleared away by then goes by itself. */
const KEPT_S = 86_400;

const PULL_POLICY = { missing: "IfNotPresent", always: "Always", never: "Never" } as const;

/** A Job of one Pod that is started once, with as few rights as a Pod can have. */
export function jobOf(spec: ContainerSpec, { namespace, pullSecret }: JobPlace, nowAt: Instant): V1Job {
  const { job } = spec;
  const labels = {
    ...labelsOf(spec.identity),
    [NETWORK_LABEL]: job.network,
    "app.kubernetes.io/managed-by": "punctual",
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: spec.name, namespace, labels },
    spec: {
      parallelism: 1,
      completions: 1,
      // Trying again is the scheduler's, with a fence of its own for every attempt.
      backoffLimit: 0,
      activeDeadlineSeconds: Math.max(1, Math.ceil((spec.deadlineAt - nowAt) / 1000)) + DEADLINE_MARGIN_S,
      ttlSecondsAfterFinished: KEPT_S,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: "Never",
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: Math.ceil(job.stopGraceMs / 1000),
          securityContext: { seccompProfile: { type: "RuntimeDefault" }, ...userOf(job.user) },
          containers: [containerOf(spec)],
          ...(job.resources.tmpMb === 0
            ? {}
            : { volumes: [{ name: "tmp", emptyDir: { medium: "Memory", sizeLimit: `${job.resources.tmpMb}Mi` } }] }),
          ...(pullSecret === undefined ? {} : { imagePullSecrets: [{ name: pullSecret }] }),
        },
      },
    },
  };
}

function containerOf({ image, command, args, env, job }: ContainerSpec): V1Container {
  const { cpu, memoryMb, tmpMb } = job.resources;
  const limits = { cpu: `${Math.round(cpu * 1000)}m`, memory: `${memoryMb}Mi` };
  return {
    name: CONTAINER,
    image,
    imagePullPolicy: PULL_POLICY[job.pull],
    ...(command === undefined ? {} : { command: command.map(literal) }),
    ...(args === undefined ? {} : { args: args.map(literal) }),
    env: Object.entries(env).map(([name, value]) => ({ name, value: literal(value) })),
    ...(job.workdir === undefined ? {} : { workingDir: job.workdir }),
    resources: { limits, requests: limits },
    securityContext: {
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: job.readOnlyRoot,
      capabilities: { drop: ["ALL"] },
    },
    ...(tmpMb === 0 ? {} : { volumeMounts: [{ name: "tmp", mountPath: "/tmp" }] }),
    terminationMessagePolicy: "File",
  };
}

/** Kubernetes puts in variables where it reads $(NAME): a tenant's text is to stay as it is. */
const literal = (text: string) => text.replaceAll("$(", () => "$$(");

function userOf(user: string | undefined) {
  const [uid, gid] = user?.split(":") ?? [];
  return {
    ...(uid === undefined ? {} : { runAsUser: Number(uid) }),
    ...(gid === undefined ? {} : { runAsGroup: Number(gid) }),
  };
}
