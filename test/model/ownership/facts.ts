import type pg from "pg";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { isOpen } from "./births.ts";
import { EFFECTS, OBJECTS, type OutcomeFacts, toldOutcomes } from "./outcome-facts.ts";
import { isNamed, type Reference } from "./reference.ts";
import type { Run } from "./terms.ts";

/** What the tables say of the tenants of one sequence, in the words of the reference. */
export type Facts = { runs: Fact[]; hints: { id: bigint; runs: Uuid[] }[] } & OutcomeFacts;
type Fact = Record<string, string | null> & { id: Uuid; schedule_id: Uuid; at: string; manual: string };

const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint::text`;
const RUNS = `
  select r.id, r.schedule_id, ${us("r.scheduled_at")} as at, (r.trigger = 'manual')::text as manual,
         coalesce(l.state, r.state) as state, r.skip_reason, coalesce(l.attempt, r.attempts)::text as attempt,
         case when l.guard = l.id then 'own' when l.guard is not null then 'slot' end as seat,
         l.fence::text as fence, l.worker, ${us("l.lease_until")} as lease_until, ${us("l.deadline_at")} as deadline_at,
         case when l.state <> 'running' then ${us("l.not_before")} end as not_before,
         l.budget_attempt::text as spent, l.interruptions::text as interruptions, l.expiries::text as expiries,
         (coalesce(l.cancel_requested_at, r.cancel_requested_at) is not null)::text as cancel_requested,
         r.accepted_fence::text as accepted_fence, r.result_sha256,
         (select string_agg(concat_ws(' ', d.reason, d.resolution), ' and ') from dead_letter d where d.run_id = r.id) as letter,
         (select count(*)::text from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id) as attempts
    from run r left join live_run l on l.id = r.id
   where r.tenant_id = any($1::uuid[]) and r.skip_reason is distinct from 'paused'`;
const HINTS = `
  select id::text as id, runs from outbox where tenant_id = any($1::uuid[]) and kind = 'run' order by outbox.id`;

/** All of one moment, and in one round trip: this is asked after each command. */
const listOf = (rows: string) => `(select coalesce(json_agg(one), '[]') from (${rows}) one)`;
const READ = {
  name: "model_read",
  text: `select ${listOf(RUNS)} as runs, ${listOf(HINTS)} as hints, ${listOf(OBJECTS)} as objects, ${listOf(EFFECTS)} as effects`,
};

export async function readFacts(admin: pg.Pool, reference: Reference): Promise<Facts> {
  const values = [reference.tenants.map((one) => one.id)];
  const { rows } = await admin.query({ ...READ, values });
  const { hints, ...facts } = rows[0];
  return { ...facts, hints: hints.map((one: { id: string; runs: Uuid[] }) => ({ ...one, id: BigInt(one.id) })) };
}

/** Throws unless the facts are the reference's, run by run. Learns the ids of runs that were born. */
export function told(reference: Reference, { runs, hints, ...outcomes }: Facts): void {
  const nameOf = (schedule: Uuid, at: string | number, manual: string | boolean) => `${schedule} ${at} ${manual}`;
  const found = new Map(runs.map((fact) => [fact.id, fact]));
  const rule = new Map(runs.map((fact) => [nameOf(fact.schedule_id, fact.at, fact.manual), fact.id]));
  for (const run of reference.runs) run.id ??= rule.get(nameOf(run.schedule.id!, run.at, run.manual));
  const named = hints.flatMap((hint) => hint.runs);
  for (const run of reference.runs) {
    const fact = found.get(run.id!);
    if (fact === undefined)
      throw new Error(`there is no run of ${run.at}, and should be: ${JSON.stringify(said(run))}`);
    found.delete(run.id!);
    const { id, schedule_id, at, manual, ...rest } = fact;
    const differing = Object.entries(said(run)).filter(([name, value]) => (rest[name] ?? null) !== value);
    if (differing.length > 0) {
      const each = differing.map(([name, value]) => `${name} is ${rest[name]} and should be ${value}`);
      throw new Error(`run ${id} of ${at} (${run.state}): ${each.join("; ")}`);
    }
    const times = named.filter((one) => one === id).length;
    if (isNamed(run) && times !== 1) throw new Error(`run ${id} (${run.state}) is named ${times} times`);
  }
  if (found.size > 0) throw new Error(`nobody asked for ${JSON.stringify([...found.values()][0])}`);
  toldOutcomes(reference, outcomes);
}

function said(run: Run): Record<string, string | null> {
  const text = (value: unknown) => (value === undefined ? null : String(value));
  const open = (value: unknown) => (isOpen(run) ? text(value) : null);
  const running = (value: unknown) => (run.state === "running" ? text(value) : null);
  return {
    state: run.state,
    skip_reason: text(run.skipReason),
    attempt: text(run.attempt),
    attempts: text(run.attempt),
    seat: open(run.seat),
    fence: running(run.fence),
    worker: running(run.worker),
    lease_until: running(run.leaseUntil),
    deadline_at: running(run.deadlineAt),
    not_before: isOpen(run) && run.state !== "running" ? text(run.notBefore) : null,
    spent: open(run.spent),
    interruptions: open(run.interruptions),
    expiries: open(run.expiries),
    cancel_requested: text(run.cancelRequested || run.state === "canceled"),
    accepted_fence: text(run.result?.fence),
    result_sha256: text(run.result?.sha256),
    letter: run.letter === undefined ? null : [run.letter.reason, run.letter.resolution ?? []].flat().join(" "),
  };
}
