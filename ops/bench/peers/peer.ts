/** What a peer is asked: process `jobs` no-op jobs, all due now, on empty servers that nobody else uses meanwhile. */
export interface PeerOptions {
  readonly jobs: number;
  readonly postgresUrl: string;
  readonly redisUrl: string | undefined;
}

/**
 * What a peer did. `runsPerSecond` is the full rate: from the first enqueue to the last completion its store has
 * committed. `lost` jobs never ran or never completed; `doubled` is the number of executions beyond the first.
 */
export interface PeerResult {
  readonly name: string;
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly lost: number;
  readonly doubled: number;
  /** How the peer was set up; `batched`, where it has such a mode, is a second figure in which it does less per job. */
  readonly settings: Record<string, unknown>;
}

/** One measured drain of one mode of a peer. */
export interface Drain {
  readonly runs: number;
  readonly seconds: number;
  readonly runsPerSecond: number;
  readonly lost: number;
  readonly doubled: number;
}

/** What each of the peers' modules exports. */
export interface PeerModule {
  readonly runPeer: (options: PeerOptions) => Promise<PeerResult>;
}
