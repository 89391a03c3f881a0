import type { Definition } from "../domain/definition.ts";
import { type ChainEvidence, type ChainVerdict, verifyChain } from "../domain/ledger/chain.ts";
import { type Link, recompute, type SecondOpinion } from "../domain/ledger/second-opinion.ts";
import { bounded } from "../domain/materialization.ts";
import type { NextAfter } from "../domain/planning/look-back.ts";
import { compileRule } from "../domain/recurrence/compile.ts";
import { nextAfter } from "../domain/recurrence/next.ts";
import type { ZoneSource } from "../domain/recurrence/zone-source.ts";
import type { Instant } from "../kernel/clock.ts";
import { PunctualError } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";
import { readChainWithin } from "../store/reads/chains.ts";
import {
  countLedger,
  endOfFirst,
  type LedgerCounts,
  type LedgerEntry,
  type LedgerPosition,
  listLedger,
  readDefinitions,
} from "../store/reads/ledger.ts";
import type { ScheduleView } from "../store/reads/schedules.ts";
import { inSnapshot } from "../store/reads/snapshot.ts";
import { isStatementTimeout } from "../store/sql-errors.ts";
import type { ApiContext } from "./context.ts";

/** Records that one answer verifies and counts: two weeks of minutes, a tenth of a second or so. */
const MOST_VERIFIED = 20_000;

export type LedgerPage = {
  fromAt: Instant;
  toAt: Instant;
  /** Items and counts are of what was written up to here; the chain is verified as it stands. */
  boundAt: Instant;
  limit: number;
  after?: LedgerPosition;
};

export type Account = ChainVerdict & {
  entries: LedgerEntry[];
  more: boolean;
  counts: LedgerCounts;
  /** Earlier than the period's end where it holds more records than are looked at. */
  verifiedTo: Instant;
  nextRunAt: Instant | null;
  opinion: SecondOpinion;
  definitionOf(revision: number): Definition;
};

/** Accounts for a period of a schedule's nominal instants. Throws `busy` when that takes too long. */
export async function accountFor(context: ApiContext, schedule: ScheduleView, page: LedgerPage): Promise<Account> {
  const read = await readRecords(context, schedule.id, page);
  const entries = read.entries.slice(0, page.limit);
  const definitionOf = (revision: number) => read.definitions.get(revision)!;
  const { holes, notes } = verifyChain(read.evidence);
  const opinion = recompute(entries.flatMap(toLink), read.evidence.starts, (revision) =>
    ruleOf(definitionOf(revision), context.zones),
  );
  return {
    entries,
    more: read.entries.length > page.limit,
    counts: read.counts,
    verifiedTo: read.verifiedTo,
    nextRunAt: read.evidence.cursor.nextRunAt,
    // What lies beside the period was read to judge it.
    holes: holes.filter(
      (hole) =>
        (hole.before ?? Number.POSITIVE_INFINITY) > page.fromAt &&
        (hole.after ?? Number.NEGATIVE_INFINITY) < read.verifiedTo,
    ),
    notes,
    opinion,
    definitionOf,
  };
}

async function readRecords(context: ApiContext, scheduleId: Uuid, page: LedgerPage) {
  const { fromAt, toAt, boundAt } = page;
  try {
    return await inSnapshot(context.db, async (at) => {
      const verifiedTo = await endOfFirst(at, scheduleId, { fromAt, toAt }, MOST_VERIFIED);
      const entries = await listLedger(at, scheduleId, { ...page, limit: page.limit + 1 });
      const counts = await countLedger(at, scheduleId, { fromAt, toAt: verifiedTo, boundAt });
      const evidence = (await readChainWithin(at, scheduleId, fromAt, verifiedTo)) as ChainEvidence;
      const definitions = await readDefinitions(at, scheduleId, [...new Set(entries.map((entry) => entry.revision))]);
      return { verifiedTo, entries, counts, evidence, definitions };
    });
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    const message = "The ledger was not read in time; ask for less time with from and to";
    throw new PunctualError("busy", message, { actor: "caller", retryable: true, cause: error });
  }
}

/** A backfill has given its runs the revision of its own time: of the rule that named them they tell nothing. */
function toLink(entry: LedgerEntry): Link[] {
  const { at, prevAt, revision } = entry;
  if (entry.kind === "range") return [{ fromAt: at, toAt: entry.toAt, prevAt, revision, instants: entry.instants }];
  return entry.trigger === "backfill" ? [] : [{ fromAt: at, toAt: at, prevAt, revision, instants: 1 }];
}

/** Undefined: it names no instants of its own, or cannot be computed at present. */
function ruleOf(definition: Definition, zones: ZoneSource): NextAfter | undefined {
  if (definition.rule.kind === "afterCompletion") return undefined;
  const compiled = compileRule(definition.rule, zones);
  return compiled.ok ? bounded((at) => nextAfter(compiled.rule, at), definition) : undefined;
}
