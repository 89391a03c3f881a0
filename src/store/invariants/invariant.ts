import { type Statement, sql } from "../database.ts";

/**
 * An invariant of the protocol as a query for the rows that break it, asked in pieces, because no look at a large table
 * may be one statement. `over` says what a piece is, and so what its parameters are:
 *
 *   schedules  $1 uuid[]: of these schedules
 *   starts     $1 uuid[], $2, $3 timestamptz: history of these schedules, all of it or that of these instants (inclusive)
 *   runs       $1, $2 timestamptz, $3, $4 uuid: runs of these instants (inclusive) and ids, from (inclusive) to (exclusive)
 *   moment     none: what is open now, which is little
 *
 * A piece is one statement, hence one snapshot: it may be asked while everything runs, and what it finds is no passing
 * state of a verb that is under way.
 */
export type Invariant<Id extends string = string> = {
  id: Id;
  /** Number in the protocol, and the promise in a sentence. */
  name: string;
  over: "schedules" | "starts" | "runs" | "moment";
  statement: Statement;
};

const make =
  (over: Invariant["over"]) =>
  <const Id extends string>(id: Id, name: string, text: string): Invariant<Id> => ({
    id,
    name,
    over,
    statement: sql(`invariant_${id.replaceAll("-", "_")}`, text),
  });

export const ofSchedules = make("schedules");
export const ofStarts = make("starts");
export const ofRuns = make("runs");
export const ofMoment = make("moment");

/** The runs of one piece. */
export const IN_PIECE = "r.scheduled_at >= $1 and r.scheduled_at <= $2 and r.id >= $3 and r.id < $4";
