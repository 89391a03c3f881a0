import { z } from "zod";
import { changedFields } from "../../../domain/preview/field-diff.ts";
import { compareBetween, type InstantSet } from "../../../domain/preview/instant-diff.ts";
import type { Rule } from "../../../domain/recurrence/rule.ts";
import { showId, type Uuid } from "../../../kernel/ids.ts";
import { listRevisions, type RevisionView } from "../../../store/reads/schedules.ts";
import { type ApiContext, type Caller, READERS } from "../../context.ts";
import { ordinalSchema, scheduleParams, shownInstant } from "../../input/fields.ts";
import { fieldChanges, presentFields } from "../../present/change.ts";
import { showInstant } from "../../present/instant.ts";
import { bothInstants, presentInstant } from "../../present/schedule.ts";
import { fieldProblem, Problem } from "../../problems/problem.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { findTimetable, NO_INSTANTS } from "./preview/timetable.ts";

const MONTH_MS = 30 * 86_400_000;

const revisionNumber = ordinalSchema("must be the number of a revision");

const instantSetSchema = z.strictObject({
  count: z.int(),
  first: z.array(bothInstants).describe("The first 50"),
});

export const revisionDiffSchema = z.strictObject({
  scheduleId: z.string(),
  revision: z.int(),
  against: z.int().nullable().describe("null: the first revision, compared with nothing"),
  actor: z.string().describe("Who made `revision`"),
  createdAt: shownInstant,
  ...fieldChanges,
  instants: z
    .strictObject({
      from: shownInstant,
      to: shownInstant.describe("Earlier than 30 days ahead where there are too many instants to compare"),
      gained: instantSetSchema,
      lost: instantSetSchema,
      moved: instantSetSchema.describe("The same nominal instants, due at another time"),
      kept: z.int(),
    })
    .describe("Nominal instants from now on, as if each revision were in force"),
  source: z.literal("authority"),
});

export const diffRevisionsRoute = defineRoute({
  method: "get",
  path: "/v1/schedules/{schedule}/revisions/{revision}/diff",
  tag: "schedules",
  summary: "Say how two revisions of a schedule differ, in fields and in the instants of the next 30 days",
  roles: READERS,
  params: scheduleParams.extend({ revision: revisionNumber.describe("The revision in question") }),
  query: z.strictObject({
    against: revisionNumber.optional().describe("The revision to compare with; default: the one before"),
  }),
  answer: {
    kind: "ok",
    description: "What changed from `against` to `revision`",
    schema: revisionDiffSchema,
  },
  problems: ["not-found"],
  async handle({ params, query }, context, caller) {
    const { id } = await getSchedule(context, caller, params.schedule);
    const againstNumber = query.against ?? params.revision - 1;
    if (againstNumber === params.revision) {
      throw fieldProblem({
        field: "against",
        message: "is the same revision",
        found: String(againstNumber),
        allowed: "another one",
      });
    }
    const [revision, against] = await Promise.all([
      getRevision(context, caller, id, params.revision),
      againstNumber === 0 ? undefined : getRevision(context, caller, id, againstNumber),
    ]);
    const from = context.clock.now();
    const [before, after] = await Promise.all([
      against === undefined ? NO_INSTANTS : findTimetable(context, caller, against.definition, from, id),
      findTimetable(context, caller, revision.definition, from, id),
    ]);
    const diff = compareBetween(before, after, from, from + MONTH_MS);
    const show = (set: InstantSet, { rule }: { rule: Rule }) => ({
      count: set.count,
      first: set.first.map((at) => presentInstant(at, rule, context.zones)),
    });
    return {
      kind: "ok",
      body: {
        scheduleId: showId("sch", id),
        revision: revision.revision,
        against: against?.revision ?? null,
        actor: revision.actor,
        createdAt: showInstant(revision.createdAt),
        ...presentFields(changedFields(against === undefined ? {} : fieldsOf(against), fieldsOf(revision))),
        instants: {
          from: showInstant(from),
          to: showInstant(diff.comparedUntil),
          gained: show(diff.gained, revision.definition),
          lost: show(diff.lost, (against ?? revision).definition),
          moved: show(diff.moved, revision.definition),
          kept: diff.kept,
        },
        source: "authority",
      },
    };
  },
});

function fieldsOf({ definition, payload }: RevisionView): object {
  return { ...definition, payload };
}

async function getRevision(context: ApiContext, caller: Caller, scheduleId: Uuid, n: number): Promise<RevisionView> {
  const page = { beforeRevision: n + 1, limit: 1 };
  const [found] = await listRevisions(context.db, caller.tenantId, scheduleId, page);
  if (found?.revision === n) return found;
  throw new Problem("not-found", `The schedule has no revision ${n}`);
}
