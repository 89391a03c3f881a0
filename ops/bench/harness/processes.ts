import { type ChildProcess, fork } from "node:child_process";
import { cpuMsOf } from "./cpu.ts";
import type { BenchServers } from "./servers.ts";

export type Processes = {
  start(roles: string, env?: Record<string, string>): Promise<void>;
  /** Runs of bench.sleep take no time from now on. */
  hurry(): void;
  /** CPU ms spent so far, by roles (joined with +). */
  cpu(): Record<string, number>;
  /** Answers how long passes took, by loop. */
  stop(): Promise<Passes>;
};

export type Passes = Record<string, { passes: number; p99: number; max: number }>;

/** The system's own processes, as an operator would start them, with a no-op job registered. */
export function createProcesses(servers: BenchServers): Processes {
  const children: { roles: string; child: ChildProcess }[] = [];
  return {
    start(roles, env = {}) {
      const child = fork(new URL("./role.ts", import.meta.url), [roles], {
        env: {
          PATH: process.env.PATH,
          DATABASE_URL: servers.databaseUrl,
          ...(servers.redisUrl === undefined ? {} : { REDIS_URL: servers.redisUrl }),
          PUNCTUAL_LOG_LEVEL: "warn",
          ...(process.env.BENCH_METRICS ? { BENCH_METRICS: "1" } : {}),
          ...env,
        },
        execArgv: process.env.BENCH_PROFILE ? ["--cpu-prof", "--cpu-prof-dir=/tmp/punctual-profiles"] : [],
      });
      children.push({ roles: roles.replaceAll(",", "+"), child });
      return new Promise((resolve, reject) => {
        child.once("message", () => resolve());
        child.once("exit", (code) => reject(new Error(`${roles} ended with ${code}`)));
      });
    },
    hurry() {
      for (const { child } of children) child.send("hurry");
    },
    cpu() {
      const spent: Record<string, number> = {};
      for (const { roles, child } of children) spent[roles] = (spent[roles] ?? 0) + cpuMsOf(child.pid!);
      return spent;
    },
    async stop() {
      const passes: Passes = {};
      await Promise.all(
        children.map(
          ({ child }) =>
            new Promise<void>((resolve) => {
              child.on("message", (farewell: { passes?: Passes }) => Object.assign(passes, farewell.passes));
              child.removeAllListeners("exit");
              child.once("exit", () => resolve());
              child.kill("SIGTERM");
            }),
        ),
      );
      return passes;
    },
  };
}
