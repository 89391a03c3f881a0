/**
 * Tellings are born where runs change, by the statement that changes them: these are parts of such statements. A tenant
 * without an endpoint costs one look at an index, and no statement.
 */

/**
 * `own` is where a row has a job of its own, null for a row that has not: whoever sends reads it then. Looked up here, all
 * partitions of `run` would be part of the statement, and locked by it.
 */
const jobOf = (row: string, own: string) => `(
  select jsonb_build_object('kind', j -> 'kind', 'name', j -> 'name')
    from (select coalesce(${own} -> 'job', (
            select v.definition::jsonb -> 'job' from schedule_revision v
             where v.schedule_id = ${row}.schedule_id and v.revision = ${row}.revision)) as j) job)`;

/** What is told: the row as it is now, and names that it does not have. Written down, so that it is told the same again. */
const factsOf = (row: string, own: string) => `to_jsonb(${row}) || jsonb_build_object(
  'job', ${jobOf(row, own)},
  'schedule', (select jsonb_build_object('key', s.key, 'name', s.name) from schedule s where s.id = ${row}.schedule_id))`;

/**
 * `offset 0` keeps it one look for each row. As a join, a table of endpoints that was seen empty is taken for one row, and
 * is read from end to end by every completion until it is analyzed again. In one order: a claim and a look at what waits may
 * tell of the same late runs, and then one waits for the other.
 */
const insert = (parts: { rows: string; type: string; n: string; at: string; where: string; own: string }) => `
  insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from)
  select w.id, e.tenant_id, ${parts.type}, e.id, ${parts.n}, ${factsOf("e", parts.own)}, ${parts.at}::timestamptz,
         ${parts.at}::timestamptz, ${parts.at}::timestamptz
    from ${parts.rows} e
    cross join lateral (
      select * from webhook_endpoint w
       where w.tenant_id = e.tenant_id and w.status = 'enabled' and ${parts.type} = any(w.events)
         and (w.schedule_ids is null or e.schedule_id = any(w.schedule_ids)) and ${parts.where}
       offset 0) w
   order by e.id, w.id
  on conflict do nothing`;

/** Columns of `run` that are told of its end. */
export const END_COLUMNS = `id, scheduled_at, schedule_id, tenant_id, class, state, trigger, revision, due_at, started_at,
  finished_at, attempts, skip_reason, error_code, error_message, result_sha256, result_size, result_media_type, job`;

/** The same of a table that has a name in the statement. */
export const endColumnsOf = (table: string) =>
  END_COLUMNS.split(",")
    .map((column) => `${table}.${column.trim()}`)
    .join(", ");

/** Of rows with END_COLUMNS: runs that have just ended. */
export const tellEnds = (rows: string, at: string) =>
  insert({ rows, type: "('run.' || e.state)", n: "e.attempts", at, where: "true", own: "e.job" });

/** Of rows with END_COLUMNS, `reason` and `fingerprint`: runs that have just been given up. */
export const tellLetters = (rows: string, at: string) =>
  insert({ rows, type: "'run.dead-lettered'", n: "e.attempts", at, where: "true", own: "e.job" });

/** Columns of `live_run` that are told of a run that is late. */
const LATE_COLUMNS = `id, scheduled_at, schedule_id, tenant_id, class, revision, due_at, admitted_at, started_at, held_by`;

/** What a person holds back is not late: a replay's turn, a pause, a suspension. */
const NOT_HELD = "held_by not in ('replay', 'pause', 'suspended')";
const NO_JOB = "null::jsonb";
const lateBy = (run: string, until: string) =>
  `${until} - greatest(${run}.due_at, ${run}.admitted_at) > w.late_after_ms * interval '1 ms'`;

/** Of rows with LATE_COLUMNS: runs that start now, for the first time those that are late. */
export const tellLateStarts = (rows: string, at: string) =>
  insert({
    rows,
    type: "'run.late'",
    n: "0",
    at,
    where: `e.started_at = ${at}::timestamptz and e.${NOT_HELD} and ${lateBy("e", `${at}::timestamptz`)}`,
    own: NO_JOB,
  });

/**
 * Runs that should have started by now, of tenants that want to hear of it. Beyond a day after they were due nobody is told
 * any more: so it is enough that deliveries are kept for longer than that, and no run is told twice.
 *
 * `$2`: only what became late since then, so that a look does not grow with what waits and was told of; null: all of it. A
 * tenant's runs are read once, whatever the number of its endpoints; the first `$1` are told, of each tenant the first
 * before anybody's second. Whether one was told is a look at one entry: as `not exists` it may become a join, which reads
 * all that an endpoint was ever told for each run.
 */
export const TELL_WAITING = `
  with look as materialized (select clock_timestamp() as at),
  wanting as materialized (
    select tenant_id, min(late_after_ms) * interval '1 ms' as least, max(late_after_ms) * interval '1 ms' as most
      from webhook_endpoint where status = 'enabled' and 'run.late' = any(events)
     group by tenant_id),
  late as materialized (
    select found.*
      from look cross join wanting t
     cross join lateral (
       select w.id as endpoint_id, l.*, row_number() over () as place
         from (select ${LATE_COLUMNS}
                 from live_run
                where tenant_id = t.tenant_id and started_at is null and ${NOT_HELD}
                  and due_at > look.at - interval '1 day' and greatest(due_at, admitted_at) < look.at - t.least
                  and ($2::timestamptz is null or greatest(due_at, admitted_at) >= $2 - t.most)
               offset 0) l
        cross join lateral (
          select w.id from webhook_endpoint w
           where w.tenant_id = t.tenant_id and w.status = 'enabled' and 'run.late' = any(w.events)
             and (w.schedule_ids is null or l.schedule_id = any(w.schedule_ids)) and ${lateBy("l", "look.at")}
             and ($2::timestamptz is null or not (${lateBy("l", "$2::timestamptz")}))
          offset 0) w
        where (select d.n from webhook_delivery d
                where d.endpoint_id = w.id and d.type = 'run.late' and d.run_id = l.id and d.n = 0) is null
        limit $1) found
     order by found.place
     limit $1),
  told as (
    insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from)
    select e.endpoint_id, e.tenant_id, 'run.late', e.id, 0, (${factsOf("e", NO_JOB)}) - 'endpoint_id' - 'place',
           look.at, look.at, look.at
      from late e cross join look
     order by e.id, e.endpoint_id
    on conflict do nothing
    returning 1)
  select (select at from look) as at, (select count(*) from told)::int as told`;
