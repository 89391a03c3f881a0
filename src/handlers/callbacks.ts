import type { Instant } from "../kernel/clock.ts";
import type { JobContext } from "./context.ts";

/** What somebody elsewhere needs to say how an attempt ended: where, and by what right. */
export type CallbackPass = {
  /** `https://…/v1/worker`: `/complete`, `/fail`, `/progress`, `/log`, `/stage` follow. */
  url: string;
  /** Bearer credential that is good for this attempt and nothing else. */
  token: string;
};

/** @throws JobFailure `callback-unavailable` (permanent) where this worker has not been given what it takes to issue one. */
export type IssueCallback = (run: JobContext["run"], endsAt: Instant) => CallbackPass;
