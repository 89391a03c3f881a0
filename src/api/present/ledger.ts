import { z } from "zod";
import type { Hole } from "../../domain/ledger/chain.ts";
import type { Rule } from "../../domain/recurrence/rule.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { LIVE_STATES, SKIP_REASONS, TRIGGERS } from "../../domain/states.ts";
import { showId } from "../../kernel/ids.ts";
import type { LedgerCounts, LedgerEntry, LedgerRun } from "../../store/reads/ledger.ts";
import { LEDGER } from "../examples.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstantOrNull } from "./instant.ts";
import { RUN_STATES } from "./run.ts";
import { bothInstants, presentInstant } from "./schedule.ts";

const { at, local } = bothInstants.shape;

const instantEntry = z.strictObject({
  kind: z.enum(["ran", "pending", "skipped"]).describe("pending: the run is open; ran: it has ended, see `state`"),
  at: at.describe("The nominal instant"),
  local,
  runId: z.string().describe("A skip has one too"),
  state: z.enum(RUN_STATES),
  outcome: z
    .strictObject({
      attempts: z.int(),
      startedAt: shownInstant.nullable(),
      finishedAt: shownInstant.nullable(),
      error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    })
    .nullable()
    .describe("How the run ended; null for others"),
  reason: z.enum(SKIP_REASONS).nullable().describe("Why it was skipped"),
  trigger: z.enum(TRIGGERS),
  revision: z.int(),
});

const rangeEntry = z.strictObject({
  kind: z.literal("range").describe("Many skipped instants in a row, each counted once"),
  at: at.describe("The first of them"),
  local,
  to: bothInstants.describe("The last of them"),
  instants: z.int().nullable().describe("How many there were; null: too many to be counted"),
  backfilled: z.int().describe("Of these have become runs since, which are listed after the range: a run wins"),
  reason: z.enum(SKIP_REASONS),
  revision: z.int(),
});

const count = z.strictObject({
  value: z.int(),
  capped: z.boolean().describe("There are more than these"),
});

const holeSchema = z.strictObject({
  kind: z.enum([
    "missing-link",
    "lost-end",
    "unexplained-start",
    "unknown-end",
    "counted-twice",
    "unsettled",
    "not-computed",
  ]),
  after: shownInstant.nullable().describe("The hole is after this instant; null: nothing is recorded before it"),
  before: shownInstant.nullable(),
  expected: z.string().describe("What should be there, in words"),
});

export const ledgerSchema = z
  .strictObject({
    scheduleId: z.string(),
    from: shownInstant,
    to: shownInstant,
    complete: z
      .boolean()
      .describe(
        "Whether the recorded instants from `from` to `verifiedTo` form an unbroken chain, whatever rule made them",
      ),
    verifiedTo: shownInstant.describe("Earlier than `to` where the period holds more records than are looked at once"),
    decidedTo: shownInstant
      .nullable()
      .describe(
        "The next nominal instant: from here on nothing is decided yet; null when there is none, or it is unknown",
      ),
    holes: z.array(holeSchema).describe("Where the chain is broken; the first 20"),
    counts: z
      .strictObject({ ran: count, pending: count, skipped: count })
      .describe("Instants of the whole period up to `verifiedTo`"),
    recomputed: z
      .enum(["agrees", "differs", "not-applicable"])
      .describe(
        "A second opinion: whether the rules, by today's tz database, would name the instants of this page again. It proves nothing",
      ),
    notes: z.array(z.string()).describe("What a reader should know about this answer"),
    items: z.array(z.discriminatedUnion("kind", [instantEntry, rangeEntry])),
    next: z.string().nullable(),
    watermark: shownInstant.describe("The items and counts are as of here; later rows are on no page of this walk"),
    source: z.literal("authority"),
  })
  .meta({ id: "Ledger", example: LEDGER });

export function presentEntry(
  entry: LedgerEntry,
  rule: Rule,
  zones: ZoneSource,
): z.output<typeof instantEntry> | z.output<typeof rangeEntry> {
  const { revision } = entry;
  const both = presentInstant(entry.at, rule, zones);
  if (entry.kind === "range") {
    const { instants, backfilled, reason } = entry;
    const to = presentInstant(entry.toAt, rule, zones);
    return { kind: "range", ...both, to, instants, backfilled, reason, revision };
  }
  const { state, reason, trigger } = entry;
  const kind = state === "skipped" ? "skipped" : isLive(state) ? "pending" : "ran";
  const outcome = kind === "ran" ? outcomeOf(entry) : null;
  return { kind, ...both, runId: showId("run", entry.id), state, outcome, reason, trigger, revision };
}

function outcomeOf(run: LedgerRun) {
  return {
    attempts: run.attempt,
    startedAt: showInstantOrNull(run.startedAt),
    finishedAt: showInstantOrNull(run.finishedAt),
    error: run.error,
  };
}

function isLive(state: string): boolean {
  return (LIVE_STATES as readonly string[]).includes(state);
}

export function presentHole({ kind, after, before, expected }: Hole): z.output<typeof holeSchema> {
  return { kind, after: showInstantOrNull(after), before: showInstantOrNull(before), expected };
}

/** `isCut`: the period holds more records than were counted. */
export function presentCounts({ ran, pending, skipped, uncounted }: LedgerCounts, isCut: boolean) {
  return {
    ran: { value: ran, capped: isCut },
    pending: { value: pending, capped: isCut },
    skipped: { value: skipped, capped: isCut || uncounted > 0 },
  };
}
