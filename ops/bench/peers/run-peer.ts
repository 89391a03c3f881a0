// One peer, measured in a process of its own, which main.ts forks: run-peer.ts <peer> <PeerOptions as JSON>.
import { withFreshDatabase } from "./fresh-database.ts";
import type { PeerModule, PeerOptions, PeerResult } from "./peer.ts";

/** Drained first, to warm up and to see the pace. */
const PILOT_JOBS = 10_000;
const PATIENCE_SECONDS = 20;
/** For a peer that would need longer than that. The smaller table favours it, if anything. */
const FEWER_JOBS = 10_000;

async function measurePeer(peer: string, options: PeerOptions): Promise<PeerResult> {
  const { runPeer } = (await import(`./${peer}.ts`)) as PeerModule;
  const drain = (jobs: number) =>
    withFreshDatabase(options.postgresUrl, (postgresUrl) => runPeer({ ...options, postgresUrl, jobs }));
  const pilot = await drain(Math.min(PILOT_JOBS, options.jobs));
  const patient = options.jobs / pilot.runsPerSecond <= PATIENCE_SECONDS;
  const result = await drain(patient ? options.jobs : Math.min(FEWER_JOBS, options.jobs));
  const shortened = result.runs < options.jobs ? { fewerJobsThanAsked: options.jobs } : {};
  return { ...result, settings: { ...result.settings, synchronousCommit: "on", ...shortened } };
}

const [peer, options] = process.argv.slice(2) as [string, string];
process.once("disconnect", () => process.exit());
const result = await measurePeer(peer, JSON.parse(options) as PeerOptions);
process.send?.(result, () => process.exit());
