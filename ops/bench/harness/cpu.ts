import { readdirSync, readFileSync } from "node:fs";

const TICK_MS = 10; // USER_HZ is 100 on every Linux that Node runs on

/** CPU time (ms) a server and its children have spent so far; 0 where there is no /proc. */
export function cpuMsOf(pid: number): number {
  let ticks = 0;
  try {
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const fields = statOf(name);
      if (fields === undefined) continue;
      const isServer = Number(name) === pid;
      if (!isServer && Number(fields[1]) !== pid) continue;
      ticks += Number(fields[11]) + Number(fields[12]);
      // Children that ended are counted in their parent.
      if (isServer) ticks += Number(fields[13]) + Number(fields[14]);
    }
  } catch {
    return 0;
  }
  return ticks * TICK_MS;
}

/** Fields of /proc/PID/stat after the command's name: state, ppid, … */
function statOf(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
