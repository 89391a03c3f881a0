import type { Exit } from "../../domain/containers/exit.ts";
import type { ContainerIdentity } from "../../domain/containers/identity.ts";
import type { ContainerJob } from "../../domain/jobs/container.ts";
import type { Instant } from "../../kernel/clock.ts";
import { JobFailure, transientFailure } from "../outcome.ts";

/** A container to be started: everything is decided, nothing is left to the engine. */
export type ContainerSpec = {
  name: string;
  identity: ContainerIdentity;
  /** In full: registry, name, tag or digest. */
  image: string;
  command: readonly string[] | undefined;
  args: readonly string[] | undefined;
  env: Readonly<Record<string, string>>;
  /** When it is over at the latest, for engines that can see to it themselves. */
  deadlineAt: Instant;
  job: ContainerJob;
};

/** One that the engine has. `id` names this very container, whatever is made under its name later. */
export type FoundContainer = { id: string; name: string; identity: ContainerIdentity; phase: Phase["kind"] };

export type Phase = { kind: "created" } | { kind: "running" } | { kind: "ended"; exit: Exit };

export type LogChunk = { stream: "stdout" | "stderr"; bytes: Uint8Array };

/**
 * What runs containers. Every call is bounded in time but for logs that are followed; what cannot be reached fails as
 * `engine-unavailable`, and what the engine refuses for good as a permanent failure in its words.
 */
export type ContainerEngine = {
  /** What can be had of stdout without any of it getting lost: what is larger is better a file. */
  readonly mostStdoutBytes: number;
  /** Answers what the engine calls itself. */
  ping(): Promise<string>;
  /** The container of that name, whoever's it is; undefined where there is none. */
  find(name: string): Promise<FoundContainer | undefined>;
  /** Those of an installation, the oldest first. */
  list(installation: string): Promise<FoundContainer[]>;
  /** Fetches the image if need be, makes the container and starts it. `name-taken`: there is one of that name. */
  start(spec: ContainerSpec, signal: AbortSignal): Promise<{ kind: "started"; id: string } | { kind: "name-taken" }>;
  /** Undefined: it is gone. */
  phase(id: string): Promise<Phase | undefined>;
  /** What it has written, in order as far as the engine knows; with `follow` until it ends. */
  logs(id: string, options: { follow: boolean; signal: AbortSignal }): AsyncIterable<LogChunk>;
  /** A file of a container that has ended, opened by who reads it. @throws JobFailure `result-missing`, `result-too-large`. */
  file(id: string, path: string, mostBytes: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** SIGTERM, and SIGKILL when the grace is over; resolves when it runs no more. One that is gone is fine. */
  stop(id: string, graceMs: number): Promise<void>;
  /** Kills it if it runs, and takes away all that is left of it. One that is gone is fine. */
  remove(id: string): Promise<void>;
};

const UNAVAILABLE = "engine-unavailable";
const RETRY_AFTER_MS = 5_000;

export function engineUnavailable(reason: string, cause?: unknown): JobFailure {
  const message = `the container engine does not answer: ${reason}`;
  return transientFailure(UNAVAILABLE, message, { retryAfterMs: RETRY_AFTER_MS, cause });
}

export const isUnavailable = (error: unknown): boolean => error instanceof JobFailure && error.code === UNAVAILABLE;
