import { fork } from "node:child_process";
import { join } from "node:path";
import { installPeers } from "./install.ts";
import type { PeerOptions, PeerResult } from "./peer.ts";

const PEERS = ["bullmq", "graphile-worker", "pg-boss", "bullmq-postgres"] as const;
const TIMEOUT_MS = 300_000;

export interface RunPeersOptions extends PeerOptions {
  /** Told what is going on, a line at a time. */
  readonly log: (line: string) => void;
}

/** This file and all it imports do without the peers' packages, which only the forked process loads. */
function measureInOwnProcess(peer: string, options: PeerOptions): Promise<PeerResult> {
  return new Promise((resolve, reject) => {
    const child = fork(join(import.meta.dirname, "run-peer.ts"), [peer, JSON.stringify(options)], {
      // The bench's JSON line is the only thing on stdout.
      stdio: ["ignore", 2, 2, "ipc"],
      timeout: TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    child.once("message", (result) => resolve(result as PeerResult));
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(new Error(`the peer ${peer} ended without a result (${signal ?? `exit code ${code}`}), see above`)),
    );
  });
}

/**
 * Measures the peers one after the other on the given servers, which must have nothing else to do meanwhile: each in a
 * process and a new database of its own. `postgresUrl` is of a superuser. Without `redisUrl`, BullMQ alone is left out.
 * Rejects when a peer fails or is not done after five minutes.
 */
export async function runPeers(options: RunPeersOptions): Promise<readonly PeerResult[]> {
  const { log, ...servers } = options;
  await installPeers(log);
  const results: PeerResult[] = [];
  for (const peer of PEERS) {
    if (peer === "bullmq" && servers.redisUrl === undefined) {
      log("bullmq: left out, there is no Redis");
      continue;
    }
    const result = await measureInOwnProcess(peer, servers);
    log(
      `${peer}: ${result.runsPerSecond} runs/s (${result.runs} jobs, ${result.lost} lost, ${result.doubled} doubled)`,
    );
    results.push(result);
  }
  return results;
}
