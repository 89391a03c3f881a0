import Docker from "dockerode";
import type { Clock } from "../../../kernel/clock.ts";
import { messageOf } from "../../../kernel/errors.ts";
import { JobFailure, transientFailure } from "../../outcome.ts";
import { type Bounds, bounded } from "../bounded.ts";
import { engineUnavailable } from "../engine.ts";

/** Where a Docker or Podman engine answers; files of TLS are PEM. */
export type DockerAddress =
  | { socketPath: string }
  | { host: string; port: number; tls: { ca: string; cert: string; key: string } | undefined };

export type Connection = {
  docker: Docker;
  /** One call, within its bounds. @throws JobFailure `engine-unavailable`; the engine's answer as it is; the signal's reason. */
  call<T>(say: (options: { abortSignal: AbortSignal }) => Promise<T>, bounds?: Bounds): Promise<T>;
};

export function connectDocker(address: DockerAddress, clock: Clock): Connection {
  const docker = new Docker(optionsOf(address));
  return {
    docker,
    async call(say, bounds = {}) {
      try {
        return await bounded(clock, bounds, (abortSignal) => say({ abortSignal }));
      } catch (error) {
        bounds.signal?.throwIfAborted();
        throw asFailure(error);
      }
    },
  };
}

/** What the client would add from its environment (DOCKER_HOST …) is said here: configuration has one place. */
function optionsOf(address: DockerAddress): Docker.DockerOptions {
  const unsaid = { timeout: undefined as never, headers: {} };
  if ("socketPath" in address) {
    return { ...unsaid, host: undefined as never, socketPath: address.socketPath, protocol: "http" };
  }
  const { host, port, tls } = address;
  return { ...unsaid, host, port, protocol: tls === undefined ? "http" : "https", ...(tls ?? {}) };
}

/** The status of an answer; undefined where there was none. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof Error ? (error as Error & { statusCode?: unknown }).statusCode : undefined;
  return typeof status === "number" ? status : undefined;
}

/** An engine's answer as it is, for who knows what to make of it; silence as a failure. */
function asFailure(error: unknown): unknown {
  return error instanceof JobFailure || statusOf(error) !== undefined
    ? error
    : engineUnavailable(messageOf(error), error);
}

/** What an engine refused and nobody expected. */
export function engineRefused(error: unknown): JobFailure {
  if (error instanceof JobFailure) return error;
  return transientFailure("engine-error", `the container engine refused: ${wordsOf(error)}`, { cause: error });
}

/** What the engine says itself, without the client's framing. */
export function wordsOf(error: unknown): string {
  const { json, reason } = error as { json?: { message?: unknown }; reason?: unknown };
  if (typeof json?.message === "string") return json.message.trim();
  return messageOf(error).trim() || String(reason);
}
