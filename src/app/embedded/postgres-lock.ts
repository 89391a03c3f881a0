import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../kernel/clock.ts";
import { operatorError } from "../../kernel/errors.ts";

// The server of a program that was just killed is told at once to end (see watchdog.ts), and may then need a while.
const PATIENCE_MS = { ready: 2_000, stopping: 15_000 };

/**
 * Settles a `postmaster.pid` left in `cluster`. One whose process id has meanwhile gone to another program is removed
 * (PostgreSQL would refuse to start); one whose server is just ending is waited for; a living server is an operator error.
 */
export async function settlePostmasterLock(cluster: string): Promise<void> {
  const file = join(cluster, "postmaster.pid");
  const startedAt = systemClock.monotonic();
  while (existsSync(file)) {
    const { pid, state } = readLock(file);
    if (!isPostgresOn(pid, cluster)) {
      rmSync(file, { force: true });
      return;
    }
    if (systemClock.monotonic() - startedAt > PATIENCE_MS[state]) {
      throw operatorError(
        "data-directory-in-use",
        `A PostgreSQL (process ${pid}) is already running on ${cluster}: Punctual seems to be started here twice. Stop the other one first.`,
        { directory: cluster, pid },
      );
    }
    await systemClock.sleep(100);
  }
}

/** The first line is the process id, the eighth what the server is doing. */
function readLock(file: string): { pid: number; state: "ready" | "stopping" } {
  // It may vanish just now: that reads as nobody's lock.
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return { pid: Number.parseInt(lines[0] ?? "", 10), state: lines[7]?.trim() === "stopping" ? "stopping" : "ready" };
}

function isPostgresOn(pid: number, cluster: string): boolean {
  if (!Number.isInteger(pid)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  const commandLine = `/proc/${pid}/cmdline`;
  // Without /proc the question stays open, and PostgreSQL answers it in its own careful way.
  if (!existsSync("/proc/self/cmdline")) return true;
  return existsSync(commandLine) && readFileSync(commandLine, "utf8").split("\0").includes(cluster);
}
