import { z } from "zod";
import { showId } from "../../../kernel/ids.ts";
import type { LedgerPosition } from "../../../store/reads/ledger.ts";
import type { ScheduleView } from "../../../store/reads/schedules.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { READERS } from "../../context.ts";
import { afterSchema, instantSchema, limitSchema, scheduleParams } from "../../input/fields.ts";
import { type Account, accountFor } from "../../ledger.ts";
import { showInstant, showInstantOrNull } from "../../present/instant.ts";
import { ledgerSchema, presentCounts, presentEntry, presentHole } from "../../present/ledger.ts";
import { fieldProblem } from "../../problems/problem.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

const DAY_MS = 86_400_000;
const MOST_HOLES = 20;

export const getLedgerRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}/ledger",
  tag: "schedules",
  summary: "Account for every nominal instant of a period",
  description:
    "Each instant is a run, a skip with its reason, or inside one range of skips, in nominal order. `complete` says whether the records form an unbroken chain. Runs on demand are not listed: they have no nominal instant of the rule.",
  roles: READERS,
  params: scheduleParams,
  query: z.strictObject({
    from: instantSchema.optional().describe("Nominal instants from here on (inclusive); default: a day before `to`"),
    to: instantSchema.optional().describe("Nominal instants before this (exclusive); default: now"),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: { kind: "ok", description: "A page of the period, and the verdict on all of it", schema: ledgerSchema },
  problems: ["not-found", "invalid-cursor", "busy"],
  async handle({ params, query }, context, caller) {
    const schedule = await getSchedule(context, caller, params.schedule);
    const list = JSON.stringify(["ledger", schedule.id, query.from ?? null, query.to ?? null]);
    const position = query.after === undefined ? undefined : context.cursors.read(list, query.after);
    const boundAt = position === undefined ? await readWatermark(context.db) : Number(position[0]) / 1000;
    const toAt = query.to ?? Math.ceil(boundAt);
    const fromAt = query.from ?? toAt - DAY_MS;
    if (fromAt >= toAt) {
      const allowed = `later than ${showInstant(fromAt)}`;
      throw fieldProblem({ field: "to", message: "is not after from", found: showInstant(toAt), allowed });
    }
    const account = await accountFor(context, schedule, {
      fromAt,
      toAt,
      boundAt,
      limit: query.limit,
      ...(position && { after: { kind: position[1], at: position[2] } as LedgerPosition }),
    });
    const last = account.entries.at(-1);
    const next =
      account.more && last !== undefined
        ? context.cursors.write(list, [Math.round(boundAt * 1000), last.kind, last.at])
        : null;
    const { holes, entries, verifiedTo, definitionOf } = account;
    return {
      kind: "ok",
      body: {
        scheduleId: showId("sch", schedule.id),
        from: showInstant(fromAt),
        to: showInstant(toAt),
        complete: holes.length === 0,
        verifiedTo: showInstant(verifiedTo),
        decidedTo: showInstantOrNull(account.nextRunAt),
        holes: holes.slice(0, MOST_HOLES).map(presentHole),
        counts: presentCounts(account.counts, verifiedTo < toAt),
        recomputed: account.opinion.verdict,
        notes: [...account.notes, ...remarks(schedule, account, fromAt, toAt)],
        items: entries.map((entry) => presentEntry(entry, definitionOf(entry.revision).rule, context.zones)),
        next,
        watermark: showInstant(boundAt),
        source: "authority",
      },
    };
  },
});

/** What a reader of this answer should know, beside what the chain itself tells. */
function remarks(schedule: ScheduleView, account: Account, fromAt: number, toAt: number): string[] {
  const { holes, verifiedTo, opinion, nextRunAt } = account;
  const told: string[] = [];
  if (fromAt < schedule.createdAt) {
    const created = showInstant(schedule.createdAt);
    told.push(
      `The schedule did not exist before ${created}: of earlier instants only those are here that were backfilled.`,
    );
  }
  if (holes.length > MOST_HOLES) told.push(`${holes.length} holes were found; the first ${MOST_HOLES} are named.`);
  if (verifiedTo < toAt) {
    told.push(`The period holds more records than one answer verifies: ask again from ${showInstant(verifiedTo)}.`);
  }
  if (nextRunAt !== null && nextRunAt < toAt) {
    told.push(
      schedule.status === "paused"
        ? `The schedule is paused: instants from ${showInstant(nextRunAt)} on are decided when it is resumed.`
        : `Instants from ${showInstant(nextRunAt)} on are not decided yet.`,
    );
  }
  if (nextRunAt === null && schedule.fault !== null) {
    told.push(`What follows the newest instant is unknown: the rule cannot be computed (${schedule.fault.message}).`);
  }
  if (opinion.difference !== null) {
    const { afterAt, recordedAt, saysAt } = opinion.difference;
    const says = saysAt === null ? "no instant" : showInstant(saysAt);
    told.push(
      `After ${showInstant(afterAt)} the rule names ${says} by today's tz database; recorded is ${showInstant(recordedAt)}.`,
    );
  }
  return told;
}
