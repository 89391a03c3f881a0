import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { isStatementTimeout, sql } from "../../store/database.ts";
import {
  type BrokenChain,
  CHAINS_HOLD,
  findBrokenChains,
  findBrokenChainWithin,
  findUnfitGuards,
  GUARDS_FIT,
  INVARIANTS,
  type Invariant,
} from "../../store/invariants.ts";
import { inSnapshot } from "../../store/reads/snapshot.ts";
import { instantText } from "../../store/values.ts";
import { type Check, finding, ok, type Patient } from "./check.ts";

/** What the protocol promises, looked at piece by piece: each piece is one short statement. */

const TODO =
  "this must not happen: keep the database as it is, stop changing it by hand, and report it with these rows and the logs";
const ENOUGH = 5;
const SCHEDULES_AT_ONCE = 200;
const DAY_MS = 86_400_000;
const SHORTEST_MS = 60_000;

const PAGE_OF_SCHEDULES = sql(
  "doctor_schedules",
  "select schedule_id from schedule_cursor where schedule_id > $1 order by schedule_id limit $2",
);
const READ_SPAN = sql(
  "doctor_span",
  "select floor_at, clock_timestamp() + interval '1 day' as until_at from history_floor",
);

type Rows = readonly unknown[];

export const invariantChecks: readonly Check[] = [
  ...INVARIANTS.map((invariant) => ({
    name: `invariant ${invariant.name}`,
    examine: async (patient: Patient) => judge(await findBroken(patient, invariant)),
  })),
  {
    name: `invariant ${CHAINS_HOLD}`,
    examine: async (patient: Patient) => judge(await findHoles(patient)),
  },
  {
    name: `invariant ${GUARDS_FIT}`,
    examine: async (patient: Patient) =>
      judge(await overSchedules(patient, (ids) => findUnfitGuards(patient.careful, ids))),
  },
].toSorted((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));

function judge(broken: Rows) {
  return broken.length === 0 ? ok("holds") : finding("is broken", TODO, broken.slice(0, ENOUGH));
}

function findBroken(patient: Patient, { over, statement }: Invariant): Promise<Rows> {
  if (over === "moment") return patient.careful.query(statement);
  if (over === "schedules") return overSchedules(patient, (ids) => patient.careful.query(statement, [ids]));
  return overPeriod(patient, (fromAt, toAt) =>
    patient.careful.query(statement, [instantText(fromAt), instantText(toAt)]),
  );
}

/** The chains of all schedules, whole; one that is too long for that is followed day by day. */
function findHoles(patient: Patient): Promise<Rows> {
  return overSchedules(patient, async (ids) => {
    try {
      return (await inSnapshot(patient.db, (at) => findBrokenChains(at, ids))).map(readable);
    } catch (error) {
      if (!isStatementTimeout(error) || ids.length > 1) throw error;
    }
    return overPeriod(patient, async (fromAt, toAt) =>
      (await inSnapshot(patient.db, (at) => findBrokenChainWithin(at, ids[0]!, fromAt, toAt))).map(readable),
    );
  });
}

/** A person reads instants as such. */
function readable(hole: BrokenChain) {
  const show = (at: Instant | null) => (at === null ? null : instantText(at));
  return { ...hole, after: show(hole.after), before: show(hole.before) };
}

async function overSchedules(patient: Patient, look: (ids: readonly Uuid[]) => Promise<Rows>): Promise<Rows> {
  let after: Uuid = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const page = await patient.careful.query<{ schedule_id: Uuid }>(PAGE_OF_SCHEDULES, [after, SCHEDULES_AT_ONCE]);
    const ids = page.map((row) => row.schedule_id);
    if (ids.length === 0) return [];
    const broken = await halving(ids.length, 1, (from, to) => look(ids.slice(from, to)));
    if (broken.length > 0) return broken;
    after = ids.at(-1)!;
  }
}

async function overPeriod(patient: Patient, look: (fromAt: Instant, toAt: Instant) => Promise<Rows>): Promise<Rows> {
  const [span] = await patient.careful.query<{ floor_at: Instant; until_at: Instant }>(READ_SPAN);
  for (let at = span!.floor_at; at < span!.until_at; at += DAY_MS) {
    const broken = await halving(DAY_MS, SHORTEST_MS, (from, to) => look(at + from, at + to));
    if (broken.length > 0) return broken;
  }
  return [];
}

/** Looks at 0 to `size` in one piece, or in halves of it where one takes too long. */
async function halving(size: number, least: number, look: (from: number, to: number) => Promise<Rows>): Promise<Rows> {
  const part = async (from: number, to: number): Promise<Rows> => {
    try {
      return await look(from, to);
    } catch (error) {
      if (!isStatementTimeout(error) || to - from <= least) throw error;
    }
    const middle = from + Math.ceil((to - from) / 2);
    const broken = await part(from, middle);
    return broken.length > 0 ? broken : part(middle, to);
  };
  return part(0, size);
}
