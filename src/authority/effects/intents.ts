import { linkExpiryOf } from "../../domain/effects/definition.ts";
import { contentOf, type EmailContent } from "../../domain/effects/email-content.ts";
import { actionIdOf } from "../../domain/effects/facts.ts";
import { MAY_BE_LOST } from "../../domain/effects/settlement.ts";
import { jobTypeOf } from "../../domain/jobs/job.ts";
import type { Instant } from "../../kernel/clock.ts";
import { bucketOf, mintId, showId, type Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import type { NewEffect } from "../../store/rows/effects/effects.ts";
import type { ObjectRow } from "../../store/rows/objects/objects.ts";
import { readLostUntil } from "../../store/rows/recovery.ts";
import { type LiveRun, readLiveRuns } from "../../store/rows/runs/live-runs.ts";
import { findEmailTemplates } from "../../store/rows/tenants/email-templates.ts";
import { type Assignment, loadAssignments } from "../attempts/assignment.ts";
import type { Authority } from "../authority.ts";
import { pinResults } from "./links.ts";

const READ_NAMES = sql("effect_intents_names", "select id, name from schedule where id = any($1::uuid[])");

export type AcceptedRun = { runId: Uuid; object: ObjectRow | undefined };

/**
 * What runs, accepted in this transaction and not yet ended, declare is to be done outside. Only those are named here
 * that declare something (`has_effects`). What an effect will say is written down now, so that it never says anything
 * else; its links pin the results for as long as they work. A run that was due before commits were lost may have
 * succeeded in them, under this very id: its effects are born in doubt, as of its instant.
 */
export async function effectIntentsOf(
  authority: Authority,
  tx: Transaction,
  accepted: readonly AcceptedRun[],
  nowAt: Instant,
): Promise<NewEffect[]> {
  if (accepted.length === 0) return [];
  const live = await readLiveRuns(
    tx,
    accepted.map((one) => one.runId),
  );
  const assignments = await loadAssignments(authority, tx, [...live.values()]);
  const schedules = [...live.values()].flatMap((run) => (run.schedule_id === null ? [] : [run.schedule_id]));
  const named = await tx.query<{ id: Uuid; name: string }>(READ_NAMES, [schedules]);
  const names = new Map(named.map((row) => [row.id, row.name]));
  const lostUntil = await readLostUntil(tx);
  const templates = await loadTemplates(tx, [...live.values()], assignments);

  const effects = accepted.flatMap(({ runId, object }): NewEffect[] => {
    const run = live.get(runId)!;
    const { work } = assignments.get(runId)!;
    const inDoubt = lostUntil !== null && run.scheduled_at < lostUntil;
    const shownRun = showId("run", runId);
    const facts = {
      schedule:
        run.schedule_id === null
          ? null
          : { id: showId("sch", run.schedule_id), name: names.get(run.schedule_id) ?? "" },
      job: jobTypeOf(work.job),
      run: { id: shownRun, scheduledAt: run.scheduled_at, finishedAt: nowAt, attempt: run.attempt },
    };
    const result = object && { sha256: object.sha256!, size: Number(object.size), mediaType: object.media_type };
    return (work.effects ?? []).map(
      (effect): NewEffect => ({
        id: mintId(nowAt, bucketOf(runId)),
        tenant_id: run.tenant_id,
        run_id: runId,
        schedule_id: run.schedule_id,
        object_id: object?.id ?? null,
        action_id: actionIdOf(effect.name, shownRun),
        request: {
          effect,
          facts: {
            ...facts,
            result: result === undefined ? null : { ...result, linkExpires: linkExpiryOf(effect, nowAt) },
          },
          ...(effect.kind === "email"
            ? { content: contentOf(effect, templates.get(`${run.tenant_id} ${effect.template}`), result !== undefined) }
            : {}),
        },
        in_doubt: inDoubt,
        first_sent_at: inDoubt ? run.scheduled_at : null,
        error_message: inDoubt ? MAY_BE_LOST : null,
      }),
    );
  });
  await pinResults(tx, effects);
  return effects;
}

/** The templates that emails of these runs name, by tenant and name. Nothing is asked where none does. */
async function loadTemplates(
  tx: Transaction,
  runs: readonly LiveRun[],
  assignments: ReadonlyMap<Uuid, Assignment>,
): Promise<ReadonlyMap<string, EmailContent>> {
  const wanted = runs.flatMap((run) =>
    (assignments.get(run.id)!.work.effects ?? []).flatMap((effect) =>
      effect.kind === "email" && effect.template !== undefined
        ? [{ tenantId: run.tenant_id, name: effect.template }]
        : [],
    ),
  );
  if (wanted.length === 0) return new Map();
  const found = await findEmailTemplates(tx, wanted);
  return new Map(found.map(({ tenantId, name, ...content }) => [`${tenantId} ${name}`, content]));
}
