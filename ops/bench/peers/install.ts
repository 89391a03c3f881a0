import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const HERE = import.meta.dirname;

type Lock = { packages?: Record<string, { version?: string; optional?: boolean }> };

const readLock = (path: string): NonNullable<Lock["packages"]> =>
  (JSON.parse(readFileSync(path, "utf8")) as Lock).packages ?? {};

/** npm writes node_modules/.package-lock.json last of all, so it tells what a completed install brought. */
function isInstalled(): boolean {
  const installedLock = join(HERE, "node_modules", ".package-lock.json");
  if (!existsSync(installedLock)) return false;
  const installed = readLock(installedLock);
  return Object.entries(readLock(join(HERE, "package-lock.json"))).every(([place, wanted]) => {
    if (place === "") return true;
    const found = installed[place];
    return found ? found.version === wanted.version : wanted.optional === true;
  });
}

/**
 * Installs the peers' packages as the lock beside this file says, unless they are there: only the `peers` bench needs
 * them. Rejects when npm is missing or fails, with what to do about it.
 */
export async function installPeers(log: (line: string) => void): Promise<void> {
  if (isInstalled()) return;
  log("installing the peers' packages (npm ci in ops/bench/peers) …");
  // What npm prints goes to stderr: stdout belongs to the bench.
  const npm = spawn("npm", ["ci", "--no-audit", "--no-fund"], { cwd: HERE, stdio: ["ignore", 2, 2] });
  const code = await new Promise<number | null>((resolve, reject) => {
    npm.once("error", (error) =>
      reject(new Error(`npm could not be started: it must be on PATH (${error.message})`, { cause: error })),
    );
    npm.once("exit", resolve);
  });
  if (code !== 0)
    throw new Error("npm ci failed in ops/bench/peers (see above). Is there a network, and room on the disk?");
}
