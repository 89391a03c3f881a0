import { type ChildProcess, fork } from "node:child_process";
import type { BenchServers } from "./servers.ts";

export type Processes = {
  start(roles: string, env?: Record<string, string>): Promise<void>;
  stop(): Promise<Ended>;
};

export type Ended = {
  /** By roles of a process. */
  cpuMs: Record<string, number>;
  /** How long passes took, by loop. */
  passes: Record<string, { passes: number; p99: number; max: number }>;
};

type Farewell = { role?: string; cpuMs?: number; passes?: Ended["passes"] };

/** The system's own processes, as an operator would start them, with a no-op job registered. */
export function createProcesses(servers: BenchServers): Processes {
  const children: ChildProcess[] = [];
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
      children.push(child);
      return new Promise((resolve, reject) => {
        child.once("message", () => resolve());
        child.once("exit", (code) => reject(new Error(`${roles} ended with ${code}`)));
      });
    },
    async stop() {
      const ended: Ended = { cpuMs: {}, passes: {} };
      await Promise.all(
        children.map(
          (child) =>
            new Promise<void>((resolve) => {
              child.on("message", ({ role, cpuMs = 0, passes }: Farewell) => {
                if (role !== undefined) ended.cpuMs[role] = (ended.cpuMs[role] ?? 0) + cpuMs;
                Object.assign(ended.passes, passes);
              });
              child.removeAllListeners("exit");
              child.once("exit", () => resolve());
              child.kill("SIGTERM");
            }),
        ),
      );
      return ended;
    },
  };
}
