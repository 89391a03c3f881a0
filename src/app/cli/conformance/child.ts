import { spawn } from "node:child_process";
import { systemClock } from "../../../kernel/clock.ts";

/** A worker that was started to be looked at. */
export type Child = {
  /** Rejects when it ends without having been told to: there is nothing to look at any more. */
  untimely: Promise<never>;
  terminate(): void;
  /** Resolves when it has exited; throws, and kills it, where it does not in time. */
  exit(withinMs: number): Promise<void>;
};

/** Its words go to standard error: ours are the checks. */
export function startChild(command: string, env: Readonly<Record<string, string | undefined>>): Child {
  const child = spawn("sh", ["-c", `exec ${command}`], { env, stdio: ["ignore", 2, 2] });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  let isTold = false;
  const untimely = new Promise<never>((_, reject) => {
    child.once("exit", (code, signal) => {
      if (!isTold) reject(new Error(`the worker has ended by itself (${signal ?? `exit code ${code}`})`));
    });
  });
  // It may end when nobody looks.
  untimely.catch(() => undefined);
  return {
    untimely,
    terminate() {
      isTold = true;
      child.kill("SIGTERM");
    },
    async exit(withinMs) {
      const enough = new AbortController();
      const late = systemClock.sleep(withinMs, enough.signal).then(() => "late");
      const ended = await Promise.race([exited, late]);
      enough.abort();
      if (ended !== "late") return;
      child.kill("SIGKILL");
      throw new Error(`the worker did not exit within ${withinMs} ms of SIGTERM`);
    },
  };
}
