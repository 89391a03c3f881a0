import type { Instant } from "../../kernel/clock.ts";

/**
 * The proof that no nominal instant of a schedule is missing: each link of its chain (a run, a skip, a range of skips)
 * names the instant before it, and every start of a chain is on record with the last instant of the chain before.
 * Works from rows alone: what the rule would say today is no evidence of what it said then.
 */

/** Links that follow each other without a gap; one row for as many as there are. */
export type Segment = {
  /** First instant of the first link, last instant of the last. */
  fromAt: Instant;
  toAt: Instant;
  /** What the first link names as the instant before it; null: a chain starts here. */
  prevAt: Instant | null;
  /** `prevAt` was a skip at the start of its chain, and a backfill has made it a run since. */
  isPrevBackfilled: boolean;
  /** Revision of the first link. */
  revision: number;
};

/** A start of a chain, as it was recorded when it happened. */
export type ChainStart = {
  startedAt: Instant;
  reason: "created" | "revised" | "resumed" | "adopted";
  revision: number;
  /** Newest settled instant of the chain before; null: it had none, or there was none. */
  prevLastAt: Instant | null;
  isPrevLastBackfilled: boolean;
  /** What would have come next in the chain before. */
  prevNextAt: Instant | null;
  /** Why its rule could not be computed then. */
  prevFault: string | null;
};

export type ChainEvidence = {
  /** In order. */
  segments: readonly Segment[];
  /** In the order they happened. A schedule older than this record has none for its first chains. */
  starts: readonly ChainStart[];
  cursor: { lastNominalAt: Instant | null; isLastBackfilled: boolean; nextRunAt: Instant | null };
  /** When the schedule was created: no chain of it is older. */
  createdAt: Instant;
  /** Runs of instants before the floor are gone. */
  floorAt: Instant;
  /** Whether links come before, or after, those that were read. */
  isCutBefore: boolean;
  isCutAfter: boolean;
};

export type Hole = {
  kind:
    | "missing-link"
    | "lost-end"
    | "unexplained-start"
    | "unknown-end"
    | "counted-twice"
    | "unsettled"
    | "not-computed";
  /** The settled instants on either side; null: there is none on that side. */
  after: Instant | null;
  before: Instant | null;
  /** What should be there, in words. */
  expected: string;
};

export type ChainVerdict = { holes: Hole[]; notes: string[] };

type Group = { fromAt: Instant; toAt: Instant; revision: number; isStart: boolean };
type End = { at: Instant; isBackfilled: boolean; by: string };

export function verifyChain(evidence: ChainEvidence): ChainVerdict {
  const holes: Hole[] = [];
  const notes: string[] = [];
  const groups = followLinks(evidence, holes, notes);
  matchEnds(evidence, groups, holes, notes);
  holes.push(...evidence.starts.flatMap(leftUnsettled));
  const newestAt = groups.at(-1)?.toAt;
  const { nextRunAt } = evidence.cursor;
  if (!evidence.isCutAfter && nextRunAt !== null && newestAt !== undefined && nextRunAt <= newestAt) {
    const expected = `a next instant after ${show(newestAt)}; the cursor stands at ${show(nextRunAt)}`;
    holes.push({ kind: "counted-twice", after: newestAt, before: nextRunAt, expected });
  }
  return { holes: holes.toSorted((a, b) => (a.after ?? a.before ?? 0) - (b.after ?? b.before ?? 0)), notes };
}

/** Follows the links from segment to segment; answers the chains they make. */
function followLinks(evidence: ChainEvidence, holes: Hole[], notes: string[]): Group[] {
  const { createdAt, floorAt } = evidence;
  const ends = evidence.starts.flatMap((start) => start.prevLastAt ?? []);
  const groups: Group[] = [];
  let endAt: Instant | undefined;
  for (const segment of evidence.segments) {
    const { fromAt, toAt, prevAt, revision } = segment;
    const last = groups.at(-1);
    if (endAt !== undefined && fromAt <= endAt) {
      const expected = `one record for each instant; what ends at ${show(endAt)} covers ${show(fromAt)} too`;
      holes.push({ kind: "counted-twice", after: endAt, before: fromAt, expected });
    }
    if (prevAt === null || segment.isPrevBackfilled) {
      groups.push({ fromAt, toAt, revision, isStart: true });
    } else if (prevAt === endAt && last !== undefined) {
      last.toAt = toAt;
    } else if (endAt === undefined && evidence.isCutBefore) {
      groups.push({ fromAt, toAt, revision, isStart: false });
    } else if (prevAt < floorAt && prevAt >= createdAt && (endAt === undefined || endAt < prevAt)) {
      notes.push(`Runs before ${show(floorAt)} are no longer kept, so the chain can be followed from there only.`);
      groups.push({ fromAt, toAt, revision, isStart: false });
    } else {
      const expected = `a run, a skip or the end of a range at ${show(prevAt)}`;
      holes.push({ kind: "missing-link", after: endAt ?? null, before: fromAt, expected });
      // What is missing may be the start of another chain.
      const hasEnded = endAt !== undefined && ends.some((end) => end >= endAt! && end < prevAt);
      if (last === undefined || hasEnded) groups.push({ fromAt, toAt, revision, isStart: false });
      else last.toAt = toAt;
    }
    endAt = Math.max(endAt ?? toAt, toAt);
  }
  return groups;
}

/** Each chain that has links must end where the record says, and each start of one must be on record. */
function matchEnds(evidence: ChainEvidence, groups: readonly Group[], holes: Hole[], notes: string[]): void {
  const { starts } = evidence;
  const isWhole = starts[0]?.reason === "created";
  const firstRevision = starts[0]?.revision ?? Number.POSITIVE_INFINITY;
  // Chains that began before starts were recorded: each can only have begun with a revision of its own.
  const older = isWhole ? [] : groups.filter((group) => group.revision < firstRevision);
  const recorded = isWhole ? groups : groups.filter((group) => group.revision >= firstRevision);
  for (const [i, group] of older.entries()) {
    const before = older[i - 1];
    if (!group.isStart || before === undefined || group.revision > before.revision) continue;
    holes.push(unexplained(group, before.toAt));
  }
  if (older.length > 1)
    notes.push("The oldest chains began before their starts were recorded: their ends are taken as they are.");
  const ends = recordedEnds(evidence);
  const olderEnd = isWhole ? undefined : ends.shift();
  if (olderEnd !== null && olderEnd !== undefined) {
    const last = older.at(-1);
    const isOpen = evidence.isCutAfter && recorded.length === 0;
    if (!isOpen && isInView(evidence, groups, olderEnd.at) && last?.toAt !== olderEnd.at && !olderEnd.isBackfilled) {
      holes.push(lostEnd(olderEnd, last?.toAt ?? null, recorded[0]?.fromAt ?? evidence.cursor.nextRunAt));
    }
  }
  matchRecorded(
    evidence,
    recorded,
    ends.filter((end) => end !== null && isInView(evidence, groups, end.at)) as End[],
    holes,
  );
}

/** Where each chain ended, by the record of the next one; the newest by the cursor. First of all, what came before the record. */
function recordedEnds({ starts, cursor }: ChainEvidence): (End | null)[] {
  const ends = starts.map((start) =>
    start.prevLastAt === null
      ? null
      : { at: start.prevLastAt, isBackfilled: start.isPrevLastBackfilled, by: `the chain ${start.reason} after it` },
  );
  if (starts[0]?.reason === "created") ends.shift();
  const newest =
    cursor.lastNominalAt === null
      ? null
      : { at: cursor.lastNominalAt, isBackfilled: cursor.isLastBackfilled, by: "the cursor" };
  return [...ends, newest];
}

function isInView(evidence: ChainEvidence, groups: readonly Group[], endAt: Instant): boolean {
  const [first, last] = [groups[0], groups.at(-1)];
  if (endAt < evidence.floorAt && (first === undefined || endAt < first.fromAt)) return false;
  if (evidence.isCutBefore && first !== undefined && endAt < first.fromAt) return false;
  return !(evidence.isCutAfter && last !== undefined && endAt >= last.fromAt);
}

/** Both in order: what stands in one and not in the other is a hole. */
function matchRecorded(evidence: ChainEvidence, groups: readonly Group[], ends: readonly End[], holes: Hole[]): void {
  const closed = evidence.isCutAfter ? groups.slice(0, -1) : groups;
  const endless = (index: number) => {
    const [group, next] = [groups[index]!, groups[index + 1]];
    holes.push(next === undefined ? unknownEnd(group) : unexplained(next, group.toAt));
  };
  let i = 0;
  for (const end of ends) {
    // More starts than records: all but the newest chain before this end have none.
    while (i + 1 < closed.length && closed[i + 1]!.fromAt <= end.at) endless(i++);
    const group = closed[i];
    if (group === undefined || group.fromAt > end.at) {
      if (end.isBackfilled) continue;
      holes.push(lostEnd(end, groups[i - 1]?.toAt ?? null, groups[i]?.fromAt ?? evidence.cursor.nextRunAt));
      continue;
    }
    i++;
    if (group.toAt > end.at) holes.push(unknownEnd(group));
    else if (group.toAt < end.at && !end.isBackfilled) {
      holes.push(lostEnd(end, group.toAt, groups[i]?.fromAt ?? evidence.cursor.nextRunAt));
    }
  }
  while (i < closed.length) endless(i++);
}

function unknownEnd(group: Group): Hole {
  const expected = `a cursor, or a record of the next chain, that knows ${show(group.toAt)} as settled`;
  return { kind: "unknown-end", after: group.toAt, before: null, expected };
}

function unexplained(group: Group, afterAt: Instant | null): Hole {
  const expected = `a creation, an edit or a resume that explains a chain starting at ${show(group.fromAt)}`;
  return { kind: "unexplained-start", after: afterAt, before: group.fromAt, expected };
}

function lostEnd(end: End, after: Instant | null, before: Instant | null): Hole {
  return { kind: "lost-end", after, before, expected: `links up to ${show(end.at)}, which ${end.by} knows as settled` };
}

/** A chain may be left only when everything due in it is settled; what could not be computed is owned up to. */
function leftUnsettled(start: ChainStart): Hole[] {
  const { startedAt, prevNextAt, prevFault, prevLastAt } = start;
  const until = show(startedAt);
  if (prevFault !== null && (prevNextAt === null || prevNextAt <= startedAt)) {
    const expected = `whatever was due until ${until}: the rule could not be computed then (${prevFault})`;
    return [{ kind: "not-computed", after: prevLastAt, before: startedAt, expected }];
  }
  if (prevNextAt === null || prevNextAt > startedAt) return [];
  const expected = `records of the instants from ${show(prevNextAt)} to ${until}, when the rule was changed`;
  return [{ kind: "unsettled", after: prevLastAt, before: startedAt, expected }];
}

const show = (at: Instant) => new Date(Math.floor(at)).toISOString();
