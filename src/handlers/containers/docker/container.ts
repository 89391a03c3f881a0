import type Docker from "dockerode";
import { labelsOf } from "../../../domain/containers/identity.ts";
import { RESULT_FOLDER } from "../../../domain/jobs/container.ts";
import type { ContainerSpec, Phase } from "../engine.ts";

const MIB = 1024 * 1024;

/**
 * A container with as few rights as it can do with: no capabilities, none to be gained, a file system that cannot be
 * written but for /tmp, and no network unless the job has one.
 */
export function createOptionsOf(spec: ContainerSpec): Docker.ContainerCreateOptions {
  const { job, command, args } = spec;
  const { resources, ulimits, result } = job;
  const memory = resources.memoryMb * MIB;
  return {
    name: spec.name,
    Image: spec.image,
    // Without its command, an image's arguments mean nothing.
    ...(command === undefined ? {} : { Entrypoint: [...command], Cmd: [] }),
    ...(args === undefined ? {} : { Cmd: [...args] }),
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    ...(job.workdir === undefined ? {} : { WorkingDir: job.workdir }),
    ...(job.user === undefined ? {} : { User: job.user }),
    Labels: labelsOf(spec.identity),
    StopTimeout: Math.ceil(job.stopGraceMs / 1000),
    // A volume of its own: it can be read when the container has ended, and goes with it.
    ...(result.from === "file" ? { Volumes: { [RESULT_FOLDER]: {} } } : {}),
    HostConfig: {
      NetworkMode: job.network,
      NanoCpus: Math.round(resources.cpu * 1e9),
      Memory: memory,
      MemorySwap: memory,
      PidsLimit: resources.pids,
      ReadonlyRootfs: job.readOnlyRoot,
      Privileged: false,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      Ulimits: Object.entries(ulimits).map(([Name, most]) => ({ Name, Soft: most, Hard: most })),
      ...(resources.tmpMb === 0 ? {} : { Tmpfs: { "/tmp": `rw,nosuid,nodev,mode=1777,size=${resources.tmpMb}m` } }),
      RestartPolicy: { Name: "no" },
      LogConfig: { Type: "json-file", Config: { "max-size": logSizeOf(spec), "max-file": "1" } },
    },
  };
}

/**
 * What a container writes must not fill the machine's disk. Where it is the result, nothing of it may get lost: then its
 * worker sees how much it is, and ends it. Said in full: an engine's own default would do away with what came first.
 */
const logSizeOf = ({ job }: ContainerSpec) => (job.result.from === "stdout" ? "1000g" : KEPT_OF_LOG);
const KEPT_OF_LOG = "64m";

/** Docker's and Podman's words for where a container stands. */
const KINDS: Readonly<Record<string, Phase["kind"]>> = {
  created: "created",
  configured: "created",
  initialized: "created",
  exited: "ended",
  stopped: "ended",
  dead: "ended",
};

export const phaseKindOf = (status: string): Phase["kind"] => KINDS[status] ?? "running";

export function phaseOf({ State }: Docker.ContainerInspectInfo): Phase {
  const kind = phaseKindOf(State.Status);
  if (kind !== "ended") return { kind };
  return { kind, exit: { code: State.ExitCode, outOfMemory: State.OOMKilled, why: State.Error } };
}
