import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../kernel/clock.ts";
import { operatorError } from "../../kernel/errors.ts";

// The server of a program that was just killed needs this long to end by itself (see watchdog.ts).
const PATIENCE_MS = 10_000;

/**
 * Settles a `postmaster.pid` left in `cluster`. One whose process id has meanwhile gone to another program is removed
 * (PostgreSQL would refuse to start); one whose server is just ending is waited for; a living server is an operator error.
 */
export async function settlePostmasterLock(cluster: string): Promise<void> {
  const file = join(cluster, "postmaster.pid");
  const patientUntil = systemClock.monotonic() + PATIENCE_MS;
  while (existsSync(file)) {
    const pid = Number.parseInt(readFileSync(file, "utf8"), 10);
    if (!isPostgresOn(pid, cluster)) {
      rmSync(file, { force: true });
      return;
    }
    if (systemClock.monotonic() > patientUntil) {
      throw operatorError(
        "data-directory-in-use",
        `A PostgreSQL (process ${pid}) is already running on ${cluster}: Punctual seems to be started here twice. Stop the other one first.`,
        { directory: cluster, pid },
      );
    }
    await systemClock.sleep(100);
  }
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
