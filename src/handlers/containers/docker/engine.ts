import type { Readable } from "node:stream";
import type Docker from "dockerode";
import { installationLabel, readLabels } from "../../../domain/containers/identity.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { type JobFailure, permanentFailure, transientFailure } from "../../outcome.ts";
import { abortable } from "../abortable.ts";
import type { ContainerEngine, ContainerSpec, FoundContainer } from "../engine.ts";
import { connectDocker, type DockerAddress, engineRefused, statusOf, wordsOf } from "./connection.ts";
import { createOptionsOf, phaseKindOf, phaseOf } from "./container.ts";
import { pullImage, type RegistryAccounts } from "./pull.ts";
import { demultiplex, onlyFile } from "./streams.ts";

/** The client's types know no options of it. */
type EngineInfo = { OperatingSystem: string; ServerVersion: string };

/** Engines write it down line by line, and read it again so. */
const MOST_STDOUT_BYTES = 16 * 1024 * 1024;
/** After SIGKILL a container is gone in a moment, unless its machine is in trouble. */
const KILLED_WITHIN_MS = 15_000;
/** Making a container can mean to copy its image, and starting it to set up its network. */
const START_MS = 120_000;

/** Containers through the Docker Engine API, as Docker and Podman speak it. */
export function createDockerEngine(options: {
  address: DockerAddress;
  clock: Clock;
  accounts: RegistryAccounts;
}): ContainerEngine {
  const { address, clock, accounts } = options;
  const connection = connectDocker(address, clock);
  const { docker, call } = connection;

  /** Undefined where the engine says that there is nothing of that id or name. */
  const unlessGone = async <T>(said: Promise<T>, signal?: AbortSignal): Promise<T | undefined> => {
    try {
      return await said;
    } catch (error) {
      signal?.throwIfAborted();
      if (statusOf(error) === 404) return undefined;
      throw engineRefused(error);
    }
  };
  const inspect = (id: string) => unlessGone(call((limits) => docker.getContainer(id).inspect(limits)));

  async function create(
    spec: ContainerSpec,
    signal: AbortSignal,
  ): Promise<Docker.Container | "name-taken" | "no-image"> {
    try {
      return await call((limits) => docker.createContainer({ ...createOptionsOf(spec), ...limits }), {
        withinMs: START_MS,
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      // Podman says so with a 500.
      if (statusOf(error) === 409 || /name .* (is )?already in use/i.test(wordsOf(error))) return "name-taken";
      if (statusOf(error) === 404 && /image/i.test(wordsOf(error))) return "no-image";
      throw notStarted(error);
    }
  }

  async function createFetching(spec: ContainerSpec, signal: AbortSignal): Promise<Docker.Container | "name-taken"> {
    const { image, job } = spec;
    if (job.pull === "always") await pullImage(connection, image, accounts, signal);
    const created = await create(spec, signal);
    if (created !== "no-image") return created;
    if (job.pull === "never")
      throw permanentFailure("image-missing", `the engine has no image ${image}, and the job fetches none`);
    await pullImage(connection, image, accounts, signal);
    const again = await create(spec, signal);
    if (again === "no-image") throw transientFailure("image-missing", `the engine has lost the image ${image}`);
    return again;
  }

  async function remove(id: string): Promise<void> {
    const removed = call((limits) => docker.getContainer(id).remove({ force: true, v: true, ...limits }), {
      withinMs: KILLED_WITHIN_MS,
    });
    await removed.catch((error) => {
      // It is gone, or just going.
      if (![404, 409].includes(statusOf(error) ?? 0)) throw engineRefused(error);
    });
  }

  return {
    mostStdoutBytes: MOST_STDOUT_BYTES,

    async ping() {
      const info = await call((limits) => docker.info(limits as never) as unknown as Promise<EngineInfo>).catch(
        (error) => {
          throw engineRefused(error);
        },
      );
      return `${info.OperatingSystem} ${info.ServerVersion}`;
    },

    async find(name) {
      const found = await inspect(name);
      if (found === undefined) return undefined;
      const identity = readLabels(found.Config.Labels);
      if (identity === undefined) {
        throw permanentFailure("container-name-taken", `the container ${name} is none of this installation's`);
      }
      return { id: found.Id, name, identity, phase: phaseOf(found).kind };
    },

    async list(installation) {
      const filters = { label: [installationLabel(installation)] };
      const listed = await call((limits) => docker.listContainers({ all: true, filters, ...limits })).catch((error) => {
        throw engineRefused(error);
      });
      return listed
        .toSorted((a, b) => a.Created - b.Created)
        .flatMap(({ Id, Names, Labels, State }): FoundContainer[] => {
          const identity = readLabels(Labels);
          if (identity === undefined) return [];
          return [{ id: Id, name: (Names[0] ?? "").replace(/^\//, ""), identity, phase: phaseKindOf(State) }];
        });
    },

    async start(spec, signal) {
      const created = await createFetching(spec, signal);
      if (created === "name-taken") return { kind: "name-taken" };
      try {
        // Not to be broken off: nobody could tell whether it runs. Who is told to stop meanwhile stops it after that.
        await call((limits) => created.start(limits), { withinMs: START_MS });
        return { kind: "started", id: created.id };
      } catch (error) {
        // Podman trips over a container that has ended before it could look at it: that one was started all the same.
        if (ENDED_BEFORE_LOOKED_AT.test(wordsOf(error))) return { kind: "started", id: created.id };
        await remove(created.id).catch(() => undefined);
        throw notStarted(error);
      }
    },

    async phase(id) {
      const found = await inspect(id);
      return found && phaseOf(found);
    },

    async *logs(id, { follow, signal }) {
      const stream = await call(({ abortSignal }) => openLogs(docker, id, follow, abortSignal), { signal }).catch(
        (error) => {
          signal.throwIfAborted();
          throw engineRefused(error);
        },
      );
      yield* abortable(stream, signal, demultiplex);
      signal.throwIfAborted();
    },

    async *file(id, path, mostBytes, signal) {
      const archive = await unlessGone(
        call(({ abortSignal }) => docker.getContainer(id).getArchive({ path, abortSignal }), { signal }),
        signal,
      );
      if (archive === undefined) throw permanentFailure("result-missing", `the container has left no ${path}`);
      yield* abortable(archive as Readable, signal, (stream) => onlyFile(stream, path, mostBytes));
    },

    async stop(id, graceMs) {
      const container = docker.getContainer(id);
      const t = Math.ceil(graceMs / 1000);
      const stopped =
        t === 0
          ? call((limits) => container.kill({ signal: "SIGKILL", ...limits }), { withinMs: KILLED_WITHIN_MS })
          : call((limits) => container.stop({ t, ...limits }), { withinMs: graceMs + KILLED_WITHIN_MS });
      await stopped.catch((error) => {
        // It has ended already, or is gone.
        if (![304, 404, 409].includes(statusOf(error) ?? 0)) throw engineRefused(error);
      });
    },

    remove,
  };
}

/** The client has logs that end in one piece; they can be as large as results. */
function openLogs(docker: Docker, id: string, follow: boolean, abortSignal: AbortSignal): Promise<Readable> {
  const options = { follow, stdout: true, stderr: true };
  return new Promise((resolve, reject) => {
    docker.modem.dial(
      {
        path: `/containers/${id}/logs?`,
        method: "GET",
        isStream: true,
        statusCodes: { 200: true, 101: true, 404: "no such container", 500: "server error" },
        options,
        abortSignal,
      },
      (error: unknown, stream: unknown) => (error ? reject(error) : resolve(stream as Readable)),
    );
  });
}

const ENDED_BEFORE_LOOKED_AT = /\/proc\/\d+\/cgroup: no such process/i;

const FOR_GOOD =
  /not found|no such file|permission denied|not executable|exec format|unable to find user|invalid|cannot be/i;

/** A command that is not there will not be there next time; what else keeps a container from starting may pass. */
function notStarted(error: unknown): JobFailure {
  const failure = engineRefused(error);
  if (failure.code !== "engine-error") return failure;
  const words = wordsOf(error);
  const message = `the container could not be started: ${words}`;
  const forGood = statusOf(error) === 400 || FOR_GOOD.test(words);
  return forGood
    ? permanentFailure("container-not-started", message)
    : transientFailure("container-not-started", message);
}
