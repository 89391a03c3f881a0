import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const BOOTSTRAP = join(import.meta.dirname, "..", "..", "ops", "bootstrap.mjs");

/** A folder for the data, a home without anything in it, and a PATH with nothing but, perhaps, a Redis. */
export type Place = { folder: string; data: string; path: string; remove(): void };

export function makePlace(redisBinary: string): Place {
  const folder = makeTemporaryFolder("punctual-e2e-");
  const path = join(folder, "bin");
  mkdirSync(path);
  if (redisBinary !== "") symlinkSync(redisBinary, join(path, "redis-server"));
  return { folder, data: join(folder, "data"), path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** `npm start` as a person at a terminal meets it. */
export type Installation = {
  lines: string[];
  exited: Promise<number | null>;
  /** The rest of the line that begins with `word `. */
  line(word: string): string;
  get(path: string): Promise<Response>;
  post(path: string, body: unknown): Promise<Response>;
  /** Ctrl-C: the signal goes to the whole process group. Answers the processes that are still there. */
  interrupt(): Promise<number[]>;
};

const started = new Set<ChildProcess>();

export async function startInstallation(place: Place, port = 0): Promise<Installation> {
  const child = spawn(process.execPath, [BOOTSTRAP, "up"], {
    // A process group of its own, as a shell with job control makes one.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: place.path, HOME: place.folder, PUNCTUAL_DIR: place.data, PUNCTUAL_PORT: String(port) },
  });
  started.add(child);
  const lines: string[] = [];
  for (const stream of [child.stdout!, child.stderr!])
    createInterface({ input: stream }).on("line", (line) => lines.push(line));
  const exited = once(child, "exit").then(([code]) => {
    started.delete(child);
    return code as number | null;
  });
  const ready = () => child.exitCode !== null || lines.includes("Ctrl-C stops everything.");
  await until("it says where things are", ready, 60_000, () => lines);

  const line = (word: string) => lines.find((one) => one.startsWith(`${word} `))?.slice(word.length + 1) ?? "";
  const call = (path: string, more: RequestInit = {}) =>
    fetch(new URL(path, line("API")), {
      ...more,
      headers: { authorization: `Bearer ${line("Key")}`, "content-type": "application/json" },
    });
  return {
    lines,
    exited,
    line,
    get: (path) => call(path),
    post: (path, body) => call(path, { method: "POST", body: JSON.stringify(body) }),
    async interrupt() {
      const all = [child.pid!, ...descendantsOf(child.pid!)];
      process.kill(-child.pid!, "SIGINT");
      await exited;
      return all.filter((pid) => isAlive(pid));
    },
  };
}

/** For tests that failed before they could stop what they had started. */
export async function endAll(): Promise<void> {
  for (const child of started) {
    process.kill(-child.pid!, "SIGTERM");
    await once(child, "exit");
  }
}

function descendantsOf(pid: number): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const parents = stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
  const found = [pid];
  for (const one of found) found.push(...parents.filter(([, parent]) => parent === one).map(([child]) => child));
  return found.slice(1);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
