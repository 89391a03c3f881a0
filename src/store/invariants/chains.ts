import { type ChainEvidence, type Hole, verifyChain } from "../../domain/ledger/chain.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Queryable } from "../database.ts";
import { readChains, readChainWithin } from "../reads/chains.ts";

export const CHAINS_HOLD = "1: nominal instants are linked to the one before, or start a chain";

export type BrokenChain = { schedule_id: Uuid } & Hole;

/**
 * Every hole in the chains of these schedules, but for what a rule that could not be computed has left: that was owned up
 * to when it happened. Several statements, so they must be asked within one snapshot.
 */
export async function findBrokenChains(at: Queryable, scheduleIds: readonly Uuid[]): Promise<BrokenChain[]> {
  return [...(await readChains(at, scheduleIds))].flatMap(([id, evidence]) => brokenIn(id, evidence));
}

/** The same for the instants of one schedule in [fromAt, toAt). */
export async function findBrokenChainWithin(
  at: Queryable,
  scheduleId: Uuid,
  fromAt: Instant,
  toAt: Instant,
): Promise<BrokenChain[]> {
  const evidence = await readChainWithin(at, scheduleId, fromAt, toAt);
  return evidence === undefined ? [] : brokenIn(scheduleId, evidence);
}

function brokenIn(schedule_id: Uuid, evidence: ChainEvidence): BrokenChain[] {
  const broken = verifyChain(evidence).holes.filter((hole) => hole.kind !== "not-computed");
  return broken.map((hole) => ({ schedule_id, ...hole }));
}
