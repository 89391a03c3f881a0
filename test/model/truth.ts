import type { Uuid } from "../../src/kernel/ids.ts";
import type { World } from "../support/world.ts";
import { instantsBetween, type LiteralRule, SPAN } from "./literal-rules.ts";

export type RuleInForce = LiteralRule & {
  startAt?: number | undefined;
  endAt?: number | undefined;
  maxRuns?: number | undefined;
  /** How long after its nominal instant a run may be due; not a part of which instants there are. */
  dueWithinMs?: number;
};

type Accounted = { fromAt: number; toAt: number; instants: number | null };
export type Records = {
  accounted: Accounted[];
  /** Runs of a backfill: skips that were opened again, and others that the chain knows nothing of. */
  backfilled: number[];
  cursor: { nextAt: number | undefined; runsMade: number; fault: string | null };
};

/**
 * What the test itself knows of one schedule: the rules that were in force, when, and so which instants there must be.
 * Told of every verb that took effect, never of what the program planned.
 */
export class Truth {
  readonly id: Uuid;
  status: "active" | "paused" | "deleted" = "active";
  revision = 1;
  inForce: RuleInForce;
  /** Every instant there was up to `knownTo`. */
  #instants: number[] = [];
  #knownTo: number;
  /** The newest instant that is accounted for: none is undone when the clock is set back. */
  #newestAt = Number.NEGATIVE_INFINITY;

  constructor(id: Uuid, inForce: RuleInForce, nowAt: number) {
    this.id = id;
    this.inForce = inForce;
    this.#knownTo = nowAt;
  }

  timeIs(nowAt: number): void {
    if (this.status === "deleted" || nowAt <= this.#knownTo) return;
    for (const at of instantsBetween(this.inForce, this.#knownTo, nowAt)) this.#instants.push(at);
    this.#knownTo = nowAt;
  }

  /** What was due is due under the old rule; the new one names what comes after that, and after now. */
  async edited(inForce: RuleInForce, nowAt: number, world: World): Promise<void> {
    if (saysOf(inForce) === saysOf(this.inForce)) return;
    await this.#cut(nowAt, world);
    this.inForce = inForce;
  }

  async deleted(nowAt: number, world: World): Promise<void> {
    await this.#cut(nowAt, world);
    this.status = "deleted";
  }

  async #cut(nowAt: number, world: World): Promise<void> {
    this.timeIs(nowAt);
    const records = await readRecords(world, [this.id]);
    const { accounted, backfilled, cursor } = records.get(this.id)!;
    const known = new Set(this.#instants);
    // Of a schedule that has made all its runs nothing more is due, also where it made the last of them just now.
    const { maxRuns = Number.POSITIVE_INFINITY } = this.inForce;
    const dueTo = cursor.runsMade >= maxRuns ? Number.NEGATIVE_INFINITY : nowAt;
    const untilAt = Math.max(dueTo, accounted.at(-1)?.toAt ?? nowAt, ...backfilled.filter((at) => known.has(at)));
    this.#instants = this.#instants.filter((at) => at <= untilAt);
    this.#knownTo = Math.max(nowAt, untilAt);
  }

  /**
   * Throws unless each instant before the cursor's next is in exactly one record, and no record tells of another one.
   * `settled`: nothing that is due may be left.
   */
  check({ accounted: chained, backfilled, cursor }: Records, nowAt: number, settled: boolean): void {
    this.timeIs(nowAt);
    const known = new Set(this.#instants);
    const reopened = backfilled.filter(
      (at) => known.has(at) && !chained.some(({ fromAt, toAt }) => fromAt <= at && at <= toAt),
    );
    const accounted = [...chained, ...reopened.map((at) => ({ fromAt: at, toAt: at, instants: 1 }))].toSorted(
      (a, b) => a.fromAt - b.fromAt,
    );
    const { maxRuns } = this.inForce;
    const isExhausted = maxRuns !== undefined && cursor.runsMade >= maxRuns && cursor.nextAt === undefined;
    const { nextAt } = cursor;
    const newestAt = accounted.at(-1)?.toAt ?? Number.NEGATIVE_INFINITY;
    if (newestAt < this.#newestAt) throw this.#wrong(`${show(this.#newestAt)} was accounted for and is not any more`);
    this.#newestAt = newestAt;
    if (isExhausted) {
      this.#instants = this.#instants.filter((at) => at <= newestAt);
      this.#knownTo = Math.max(this.#knownTo, nowAt);
    }

    const must = this.#instants.filter((at) => at < (nextAt ?? Number.POSITIVE_INFINITY));
    let i = 0;
    for (const { fromAt, toAt, instants } of accounted) {
      if (i < must.length && must[i]! < fromAt) throw this.#wrong(`${show(must[i]!)} is not accounted for`);
      if (must[i] !== fromAt)
        throw this.#wrong(`${show(fromAt)} is accounted for, and is no instant or was counted before`);
      const first = i;
      while (i < must.length && must[i]! <= toAt) i++;
      if (must[i - 1] !== toAt) throw this.#wrong(`a range ends at ${show(toAt)}, which is no instant`);
      if (instants !== null && instants !== i - first) {
        throw this.#wrong(`the range from ${show(fromAt)} has ${i - first} instants and says ${instants}`);
      }
    }
    if (i < must.length)
      throw this.#wrong(`${show(must[i]!)} is not accounted for, and ${must.length - i - 1} after it`);

    if (this.status === "deleted") {
      if (nextAt !== undefined) throw this.#wrong("it is deleted and has a next instant");
      return;
    }
    if (cursor.fault !== null) throw this.#wrong(`its rule has a fault: ${cursor.fault}`);
    const rest = this.#instants[must.length] ?? this.#following(nowAt);
    if (!isExhausted && rest !== undefined && nextAt !== rest) {
      throw this.#wrong(`next is ${nextAt === undefined ? "nothing" : show(nextAt)}, and should be ${show(rest)}`);
    }
    if (
      settled &&
      this.status === "active" &&
      nextAt !== undefined &&
      nextAt <= nowAt - (this.inForce.dueWithinMs ?? 0)
    ) {
      throw this.#wrong(`${show(nextAt)} is due and was left`);
    }
  }

  /** Undefined where the next instant is further away than anybody here looks. */
  #following(nowAt: number): number | undefined {
    const fromAt = Math.max(nowAt, this.#knownTo);
    for (let daysOn = 0; daysOn < 4; daysOn++) {
      const [first] = instantsBetween(this.inForce, fromAt + daysOn * SPAN.DAY, fromAt + (daysOn + 1) * SPAN.DAY);
      if (first !== undefined) return first;
    }
    return undefined;
  }

  #wrong(what: string): Error {
    return new Error(`${this.id} (${this.status}, ${JSON.stringify(this.inForce.rule)}): ${what}`);
  }
}

const saysOf = ({ rule, startAt, endAt, maxRuns }: RuleInForce) => JSON.stringify([rule, startAt, endAt, maxRuns]);

/** What the tables say of these schedules. */
export async function readRecords(world: World, ids: readonly Uuid[]): Promise<Map<Uuid, Records>> {
  const cursors = await world.admin.query(
    "select schedule_id, next_run_at, runs_made::int as runs_made, fault from schedule_cursor where schedule_id = any($1)",
    [ids],
  );
  const { rows } = await world.admin.query(
    `select schedule_id, scheduled_at as from_at, scheduled_at as to_at, 1 as instants from run
      where schedule_id = any($1) and trigger in ('schedule', 'catch-up')
     union all
     select schedule_id, from_at, to_at, instants::int from skip_range where schedule_id = any($1)
     order by from_at`,
    [ids],
  );
  const backfills = await world.admin.query(
    "select schedule_id, scheduled_at from run where schedule_id = any($1) and trigger = 'backfill'",
    [ids],
  );
  const accounted = Map.groupBy(rows, (row) => row.schedule_id as Uuid);
  const backfilled = Map.groupBy(backfills.rows, (row) => row.schedule_id as Uuid);
  const timeOf = (at: unknown) => (at as Date).getTime();
  return new Map(
    cursors.rows.map(({ schedule_id: id, next_run_at, runs_made, fault }) => [
      id,
      {
        accounted: (accounted.get(id) ?? []).map((row) => ({
          fromAt: timeOf(row.from_at),
          toAt: timeOf(row.to_at),
          instants: row.instants,
        })),
        backfilled: (backfilled.get(id) ?? []).map((row) => timeOf(row.scheduled_at)),
        cursor: { nextAt: next_run_at === null ? undefined : timeOf(next_run_at), runsMade: runs_made, fault },
      },
    ]),
  );
}

const show = (at: number) => (Number.isFinite(at) ? new Date(at).toISOString() : "the beginning");
