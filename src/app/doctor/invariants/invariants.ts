import type { Instant } from "../../../kernel/clock.ts";
import {
  type BrokenChain,
  CHAINS_HOLD,
  findBrokenChains,
  findBrokenChainWithin,
} from "../../../store/invariants/chains.ts";
import { findUnfitGuards, GUARDS_FIT } from "../../../store/invariants/guards.ts";
import type { Invariant } from "../../../store/invariants/invariant.ts";
import { INVARIANTS } from "../../../store/invariants/invariants.ts";
import { inSnapshot } from "../../../store/reads/snapshot.ts";
import { instantText } from "../../../store/values.ts";
import { type Check, finding, ok, type Patient } from "../check.ts";
import { overRuns, overSchedules } from "./pieces.ts";
import { CHAINS_REMEDY, GUARDS_REMEDY, REMEDIES, type Remedy } from "./remedies.ts";

/** What the protocol promises, looked at piece by piece: each piece is one short snapshot. */

/** Offenders told of one invariant. */
const ENOUGH = 5;

type Rows = readonly unknown[];

export const invariantChecks: readonly Check[] = [
  invariantCheck("chains", CHAINS_HOLD, CHAINS_REMEDY, findHoles),
  invariantCheck("guards", GUARDS_FIT, GUARDS_REMEDY, ({ careful }) =>
    overSchedules(careful, ({ ids, stretch }) => (isFirst(stretch) ? findUnfitGuards(careful, ids) : NOTHING)),
  ),
  ...INVARIANTS.map((one) => invariantCheck(one.id, one.name, REMEDIES[one.id], (patient) => findBroken(patient, one))),
].toSorted((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));

function invariantCheck(
  id: string,
  name: string,
  { consequence, todo }: Remedy,
  look: (patient: Patient) => Promise<Rows>,
): Check {
  return {
    id: `invariant-${name.charAt(0)}-${id}`,
    name: `invariant ${name}`,
    async examine(patient) {
      const broken = await look(patient);
      return broken.length === 0 ? ok("holds") : finding("is broken", consequence, todo, broken.slice(0, ENOUGH));
    },
  };
}

const NOTHING: Promise<Rows> = Promise.resolve([]);

/** What does not depend on history is asked once of a schedule whose history is long. */
function isFirst(stretch: { fromAt: Instant } | undefined): boolean {
  return stretch === undefined || stretch.fromAt === 0;
}

function findBroken({ careful }: Patient, { over, statement }: Invariant): Promise<Rows> {
  switch (over) {
    case "moment":
      return careful.query(statement);
    case "schedules":
      return overSchedules(careful, ({ ids, stretch }) =>
        isFirst(stretch) ? careful.query(statement, [ids]) : NOTHING,
      );
    case "starts":
      // Stretches overlap by an instant, so that the last start of one is compared with the first of the next.
      return overSchedules(careful, ({ ids, stretch }) => {
        const bounds = stretch === undefined ? [null, null] : [instantText(stretch.fromAt), instantText(stretch.toAt)];
        return careful.query(statement, [ids, ...bounds]);
      });
    case "runs":
      return overRuns(careful, ({ fromAt, toAt, fromId, toId }) =>
        careful.query(statement, [instantText(fromAt), instantText(toAt), fromId, toId]),
      );
  }
}

/** The chains of all schedules, whole; one that is too long for that is followed stretch by stretch. */
function findHoles({ db, careful }: Patient): Promise<Rows> {
  return overSchedules(careful, async ({ ids, stretch }) => {
    const holes = await inSnapshot(db, (at) =>
      stretch === undefined
        ? findBrokenChains(at, ids)
        : findBrokenChainWithin(at, ids[0]!, stretch.fromAt, stretch.toAt),
    );
    return holes.map(readable);
  });
}

/** A person reads instants as such. */
function readable(hole: BrokenChain) {
  const show = (at: Instant | null) => (at === null ? null : instantText(at));
  return { ...hole, after: show(hole.after), before: show(hole.before) };
}
