import type { MainThread } from "../../handlers/main-thread.ts";
import { transientFailure } from "../../handlers/outcome.ts";
import type { Log } from "../../kernel/log.ts";
import type { Service } from "../../kernel/service.ts";

/**
 * A job that calls process.exit (libraries do) would end the attempts of everybody else: it fails in its place. Whose
 * call it is, is known through everything that the job awaits. Our own calls end the process as ever.
 */
export function createExitGuard(mainThread: Pick<MainThread, "current">, log: Log): Service {
  const { exit, abort } = process;
  const guarded =
    (name: "exit" | "abort", end: (code?: number | string | null) => never) =>
    (code?: number | string | null): never => {
      const who = mainThread.current();
      if (who === undefined) return end.call(process, code);
      log.error({ ...who, call: name }, "a job called for the end of the process; it fails, and the process goes on");
      throw transientFailure(
        "process-exit",
        `the job called process.${name}, which would end the attempts of others too`,
      );
    };
  return {
    name: "exit-guard",
    async start() {
      process.exit = guarded("exit", exit);
      process.abort = guarded("abort", abort);
    },
    async stop() {
      process.exit = exit;
      process.abort = abort;
    },
  };
}
