import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChainEvidence, type ChainStart, type Segment, verifyChain } from "../../../src/domain/ledger/chain.ts";

const MINUTE = 60_000;
const CREATED = Date.UTC(2026, 0, 1);
type Link = { fromAt: number; toAt: number };

/** Evidence of chains, each given by its links; every link is a segment of its own. */
function evidenceOf(chains: readonly (readonly Link[])[], change: Partial<ChainEvidence> = {}): ChainEvidence {
  const segments: Segment[] = [];
  const starts: ChainStart[] = [];
  let at = CREATED;
  for (const [n, links] of chains.entries()) {
    starts.push({
      startedAt: at + 1,
      reason: n === 0 ? "created" : "revised",
      revision: n + 1,
      prevLastAt: chains[n - 1]?.at(-1)?.toAt ?? null,
      isPrevLastBackfilled: false,
      prevNextAt: n === 0 ? null : at + MINUTE,
      prevFault: null,
    });
    for (const [i, link] of links.entries()) {
      const prevAt = links[i - 1]?.toAt ?? null;
      segments.push({ ...link, prevAt, isPrevBackfilled: false, revision: n + 1 });
      at = link.toAt;
    }
  }
  const cursor = {
    lastNominalAt: chains.at(-1)?.at(-1)?.toAt ?? null,
    isLastBackfilled: false,
    nextRunAt: at + MINUTE,
  };
  const whole = { floorAt: CREATED, createdAt: CREATED, isCutBefore: false, isCutAfter: false };
  return { segments, starts, cursor, ...whole, ...change };
}

const kindsOf = (evidence: ChainEvidence) => verifyChain(evidence).holes.map((hole) => hole.kind);

/** Up to four chains of up to six links; some links are ranges, some chains are empty. */
const histories = fc
  .array(fc.array(fc.constantFrom(0, 0, 4, 9), { maxLength: 6 }), { minLength: 1, maxLength: 4 })
  .map((chains) => {
    let at = CREATED;
    return chains.map((lengths) =>
      lengths.map((length) => {
        const fromAt = at + MINUTE;
        at = fromAt + length * MINUTE;
        return { fromAt, toAt: at };
      }),
    );
  });

describe("the chain of a schedule", () => {
  it("is whole when each record names the one before, over edits and chains without an instant", () => {
    fc.assert(fc.property(histories, (chains) => void expect(verifyChain(evidenceOf(chains)).holes).toEqual([])));
  });

  it("shows any one record that is missing, and where it was", () => {
    fc.assert(
      fc.property(histories, fc.nat(), (chains, k) => {
        const evidence = evidenceOf(chains);
        fc.pre(evidence.segments.length > 0);
        const n = k % evidence.segments.length;
        const [before, lost, after] = [n - 1, n, n + 1].map((i) => evidence.segments[i]);
        const torn = { ...evidence, segments: evidence.segments.filter((_, i) => i !== n) };
        const { holes } = verifyChain(torn);
        expect(holes.length).toBeGreaterThan(0);
        expect(
          holes.some((hole) => (hole.after ?? CREATED) <= lost!.fromAt && (hole.before ?? Infinity) >= lost!.toAt),
        ).toBe(true);
        for (const hole of holes) {
          expect([null, before?.toAt]).toContain(hole.after);
          expect([null, after?.fromAt, evidence.cursor.nextRunAt]).toContain(hole.before);
        }
      }),
    );
  });

  it("takes no record twice, and no start that nobody explains", () => {
    fc.assert(
      fc.property(histories, fc.nat(), (chains, k) => {
        const evidence = evidenceOf(chains);
        fc.pre(evidence.segments.length > 1);
        const n = 1 + (k % (evidence.segments.length - 1));
        const segment = evidence.segments[n]!;
        const twice = evidence.segments.toSpliced(n, 0, segment);
        expect(kindsOf({ ...evidence, segments: twice })).toContain("counted-twice");
        fc.pre(segment.prevAt !== null);
        const cut = evidence.segments.with(n, { ...segment, prevAt: null });
        expect(kindsOf({ ...evidence, segments: cut })).toEqual(["unexplained-start"]);
      }),
    );
  });

  it("is judged by a part of it as by the whole, if the links beside the part are seen too", () => {
    fc.assert(
      fc.property(histories, fc.nat(), fc.nat(), (chains, a, b) => {
        const evidence = evidenceOf(chains);
        const count = evidence.segments.length;
        fc.pre(count > 0);
        const [from, to] = [a % count, b % count].toSorted((x, y) => x - y) as [number, number];
        const part = {
          ...evidence,
          segments: evidence.segments.slice(from, to + 1),
          isCutBefore: from > 0,
          isCutAfter: to < count - 1,
        };
        expect(verifyChain(part).holes).toEqual([]);
      }),
    );
  });

  const one = (minute: number): Link => ({ fromAt: CREATED + minute * MINUTE, toAt: CREATED + minute * MINUTE });

  it("was left with something due: that is a hole, unless the rule could not be computed", () => {
    const evidence = evidenceOf([[one(1)], [one(9)]]);
    const [created, revised] = evidence.starts as [ChainStart, ChainStart];
    const left = (change: Partial<ChainStart>) =>
      kindsOf({ ...evidence, starts: [created, { ...revised, startedAt: CREATED + 5 * MINUTE, ...change }] });
    expect(left({ prevNextAt: CREATED + 6 * MINUTE })).toEqual([]);
    expect(left({ prevNextAt: CREATED + 5 * MINUTE })).toEqual(["unsettled"]);
    expect(left({ prevNextAt: CREATED + 2 * MINUTE, prevFault: "no such zone" })).toEqual(["not-computed"]);
    expect(left({ prevNextAt: null, prevFault: "no such zone" })).toEqual(["not-computed"]);
  });

  it("of a schedule older than the record of starts is explained by revisions, and says so", () => {
    const chains = [[one(1), one(2)], [one(5)], [one(7), one(8)]];
    const evidence = evidenceOf(chains);
    for (const starts of [[], evidence.starts.slice(2)]) {
      const { holes, notes } = verifyChain({ ...evidence, starts });
      expect(holes).toEqual([]);
      expect(notes).toEqual([expect.stringContaining("before their starts were recorded")]);
      const torn = {
        ...evidence,
        starts,
        segments: evidence.segments.filter(({ fromAt }) => fromAt !== one(8).fromAt),
      };
      expect(kindsOf(torn)).toEqual(["lost-end"]);
    }
    const same = evidence.segments.map((segment) => ({ ...segment, revision: 1 }));
    expect(kindsOf({ ...evidence, starts: [], segments: same })).toEqual(["unexplained-start", "unexplained-start"]);
  });

  it("that begins below the floor of history is followed from there, and says so", () => {
    const evidence = evidenceOf([[one(1), one(2), one(3), one(4)]]);
    const kept = { ...evidence, segments: evidence.segments.slice(2), floorAt: CREATED + 3 * MINUTE };
    expect(verifyChain(kept)).toEqual({ holes: [], notes: [expect.stringContaining("no longer kept")] });
    expect(kindsOf({ ...kept, floorAt: CREATED + 2 * MINUTE })).toEqual(["missing-link"]);
  });

  it("whose first skip a backfill has made a run goes on from it", () => {
    const evidence = evidenceOf([[one(1), one(2)], [one(5)]]);
    const [, second] = evidence.segments as [Segment, Segment];
    const segments = [{ ...second, isPrevBackfilled: true }, evidence.segments[2]!];
    expect(kindsOf({ ...evidence, segments })).toEqual([]);
    const ends = { ...evidence.cursor, isLastBackfilled: true };
    expect(kindsOf({ ...evidence, segments: [segments[0]!], cursor: ends })).toEqual([]);
  });
});
