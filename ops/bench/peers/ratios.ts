import type { PeerResult } from "./peer.ts";

const KEYS: Readonly<Record<string, string>> = {
  bullmq: "bullmq",
  "graphile-worker": "graphileWorker",
  "pg-boss": "pgBoss",
  "bullmq-postgres": "bullmqPostgres",
};

/** Our full rate as a multiple of each peer's: `{ bullmq, graphileWorker, pgBoss, bullmqPostgres }`. */
export function ratiosToPeers(runsPerSecond: number, peers: readonly PeerResult[]): Record<string, number> {
  return Object.fromEntries(
    peers.map((peer) => [KEYS[peer.name] ?? peer.name, Number((runsPerSecond / peer.runsPerSecond).toFixed(2))]),
  );
}
