import { type BurstOptions, type BurstResult, burst } from "./burst.ts";
import { startBenchServers } from "./harness/servers.ts";
import { runPeers } from "./peers/main.ts";
import { ratiosToPeers } from "./peers/ratios.ts";

/** Our burst and the same number of no-op jobs on the peers, one after the other on servers of the same kind. */
export async function peers(options: BurstOptions) {
  const ours: BurstResult = await burst(options);
  const servers = await startBenchServers();
  try {
    const { databaseUrl: postgresUrl, redisUrl } = servers;
    const results = await runPeers({
      jobs: options.runs,
      postgresUrl,
      redisUrl,
      log: (line: string) => console.error(line),
    });
    const ok = ours.ok && results.every((peer) => peer.lost === 0 && peer.doubled === 0);
    return { ...ours, bench: "peers", ok, ratios: ratiosToPeers(ours.runsPerSecond, results), peers: results };
  } finally {
    await servers.stop();
  }
}
