import type { LogStore } from "../../authority/attempts/keep-log.ts";
import type { Authority } from "../../authority/authority.ts";
import { type CallbackTokens, createCallbackTokens } from "../../domain/jobs/callback-token.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { JobCatalogue } from "../job-catalogue.ts";
import type { OutputStore } from "./output-store.ts";
import { createPolls, type Polls } from "./polls.ts";
import { createPresence, type Presence } from "./presence.ts";
import { createScrubbing, type Scrubbing } from "./scrubbing.ts";

/** What the calls of workers and callbacks have to do with, beyond the authority. */
export type WorkerDesk = {
  polls: Polls;
  presence: Presence;
  scrubbing: Scrubbing;
  callbackTokens: CallbackTokens;
  outputs: OutputStore;
  logs: LogStore;
};

export type WorkerDeskParts = {
  outputs: OutputStore;
  logs: LogStore;
  /** Calls back when there may be work. */
  onWork?(callback: () => void): void;
};

export function createWorkerDesk(
  deps: WorkerDeskParts & { authority: Authority; clock: Clock; jobs: JobCatalogue; secret: string | Buffer },
): WorkerDesk {
  const { outputs, logs } = deps;
  const polls = createPolls(deps);
  deps.onWork?.(polls.wake);
  return {
    polls,
    presence: createPresence(deps),
    scrubbing: createScrubbing(deps),
    callbackTokens: createCallbackTokens(deps.secret),
    outputs,
    logs,
  };
}
