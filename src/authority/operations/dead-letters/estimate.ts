import type { LetterFilter } from "../../../domain/dead-letters.ts";
import type { Tally } from "../../../domain/operation.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { findLetters, type LetterView, readProspects } from "../../../store/reads/dead-letters.ts";
import type { Authority } from "../../authority.ts";
import { startOf, walkLetters } from "./walk.ts";

/** What the replay or dismissal of these letters would do, as things stand. */
export type LettersEstimate = {
  letters: number;
  /** There are more letters than were looked at: all counts are lower bounds. */
  capped: boolean;
  tally: Tally;
  /** The oldest few. */
  sample: LetterView[];
};

const MOST_LOOKED = 10_000;
const SAMPLE = 5;

/** Looks without locks and changes nothing; at most 10,000 open letters. */
export function estimateLetters(
  authority: Authority,
  tenantId: Uuid,
  kind: "replay" | "dismiss",
  filter: LetterFilter,
): Promise<LettersEstimate> {
  return authority.transact("estimate-letters", async (tx) => {
    const nowAt = await tx.authorityNow();
    const bounded = { ...filter, toAt: Math.min(nowAt, filter.toAt ?? nowAt) };
    const start = startOf(filter.fromAt);
    const { meant, rest } = await walkLetters(tx, tenantId, bounded, start, MOST_LOOKED, MOST_LOOKED);
    const ids = meant.map((one) => one.id);
    return {
      letters: ids.length,
      capped: rest !== undefined,
      tally: kind === "dismiss" ? { dismissed: ids.length } : await readProspects(tx, ids),
      sample: await findLetters(tx, tenantId, ids.slice(0, SAMPLE)),
    };
  });
}
