import type pg from "pg";

/** Everything of ours in schema public, one line each, in an order that depends on nothing but names. No partitions. */
const DUMP = `
  with ours as (
    select c.oid, c.relname, c.relkind, c.reloptions, c.relpartbound
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and not c.relispartition and c.relname not like 'schema_migration%'
  ),
  lines as (
    select relname as owner, 0 as rank, '' as item,
           case relkind when 'p' then 'partitioned table ' else 'table ' end || relname
             || coalesce(' by ' || pg_get_partkeydef(oid), '')
             || coalesce(' with (' || (select string_agg(o, ', ' order by o) from unnest(reloptions) o) || ')', '') as line
    from ours where relkind in ('r', 'p')
    union all
    select relname, 1, lpad(attnum::text, 4, '0'),
           '  column ' || attname || ' ' || format_type(atttypid, atttypmod)
             || case when attnotnull then ' not null' else '' end
             || case attidentity when 'a' then ' identity always' when 'd' then ' identity by default' else '' end
             || coalesce(case attgenerated when 's' then ' generated ' else ' default ' end || pg_get_expr(adbin, adrelid), '')
    from ours
    join pg_attribute on attrelid = oid and attnum > 0 and not attisdropped
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relkind in ('r', 'p')
    union all
    select relname, 2, conname, '  constraint ' || conname || ' ' || pg_get_constraintdef(c.oid)
    from ours join pg_constraint c on conrelid = ours.oid
    where contype <> 'n' -- not null: with its column; a named constraint only since PostgreSQL 18
    union all
    select t.relname, 3, i.relname, '  ' || pg_get_indexdef(i.oid)
             || coalesce(' with (' || array_to_string(i.reloptions, ', ') || ')', '')
    from ours t join pg_index on indrelid = t.oid join pg_class i on i.oid = indexrelid
    where t.relkind in ('r', 'p')
    union all
    select t.relname, 4, tgname, '  ' || pg_get_triggerdef(g.oid)
    from ours t join pg_trigger g on tgrelid = t.oid and not tgisinternal
    union all
    select relname, 0, '', 'view ' || relname || E'\\n' || pg_get_viewdef(oid) from ours where relkind in ('v', 'm')
    union all
    select sequencename::text, 0, '', 'sequence ' || sequencename || ' as ' || data_type || ' start ' || start_value
             || ' increment ' || increment_by || ' cache ' || cache_size || case when cycle then ' cycle' else '' end
    from pg_sequences
    where schemaname = 'public' and sequencename not like 'schema_migration%'
    union all
    select proname, 0, pg_get_function_identity_arguments(oid), rtrim(pg_get_functiondef(oid), E'\\n')
    from pg_proc where pronamespace = 'public'::regnamespace
  )
  select line from lines order by owner collate "C", rank, item collate "C", line collate "C"`;

export async function dumpSchema(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ line: string }>(DUMP);
  const text = rows.map(({ line }) => (line.startsWith(" ") ? line : `\n${line}`)).join("\n");
  return `-- What the migrations add up to. Written by test/store/migrate.test.ts: npx vitest run test/store/migrate.test.ts -u\n${text}\n`;
}
