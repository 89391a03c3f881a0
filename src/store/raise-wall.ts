import type { Database } from "./database.ts";
import { findWallGaps } from "./reads/wall/gaps.ts";
import { OPENINGS, READER } from "./reads/wall/tables.ts";
import { isLockTimeout } from "./sql-errors.ts";

type Door = Pick<Database, "query" | "run">;

/**
 * A role is the whole cluster's: other databases of it may make it at this moment. A managed server may forbid it: then
 * reads have one wall, and the doctor says so. Whoever made the role may not be it yet.
 */
const MAKE_ROLE = `
  do $$ begin
    if not exists (select from pg_roles where rolname = '${READER}') then
      create role ${READER} nologin;
    end if;
  exception when duplicate_object or unique_violation or insufficient_privilege then null;
  end $$`;
const BECOME_MEMBER = `
  do $$ begin
    if current_setting('server_version_num')::int >= 160000 then
      execute format('grant ${READER} to %I with set true, inherit false', current_user);
    else
      execute format('grant ${READER} to %I', current_user);
    end if;
  exception when insufficient_privilege or internal_error or unique_violation then null;
  end $$`;

/**
 * Puts up what is missing of the second wall, table by table; twice is harmless. The owner is not held by it, and for
 * whoever else works here everything stays as its privileges say. False: it does not stand, for want of a role or a lock.
 */
export async function raiseWall(db: Door): Promise<boolean> {
  let gaps = await findWallGaps(db);
  if (gaps.role === "missing") {
    await db.run(MAKE_ROLE);
    gaps = await findWallGaps(db);
  }
  if (gaps.role === "not-ours") await db.run(BECOME_MEMBER);
  if (gaps.role === "missing") return false;
  for (const table of gaps.tables) if (!(await openTo(db, table))) return false;
  return (await findWallGaps(db)).role === "there";
}

/** Access exclusive for an instant; who waits longer for it would hold up everybody behind. */
async function openTo(db: Door, table: string): Promise<boolean> {
  const { rows, hidden } = OPENINGS[table]!;
  const policies =
    rows === undefined
      ? ""
      : `alter table ${table} enable row level security;
         drop policy if exists everybody on ${table};
         create policy everybody on ${table} using (true) with check (true);
         drop policy if exists reader_of_a_tenant on ${table};
         create policy reader_of_a_tenant on ${table} as restrictive for select to ${READER} using (${rows});
         comment on policy reader_of_a_tenant on ${table} is '${rows.replaceAll("'", "''")}';`;
  const columns =
    hidden === undefined
      ? `grant select on ${table} to ${READER};`
      : `revoke select on ${table} from ${READER};
         execute (select format('grant select (%s) on ${table} to ${READER}', string_agg(quote_ident(attname), ', '))
                   from pg_attribute where attrelid = '${table}'::regclass and attnum > 0 and not attisdropped
                    and attname not in (${hidden.map((one) => `'${one}'`).join()}));`;
  for (let tries = 1; ; tries++) {
    try {
      await db.run(
        `do $wall$ begin perform set_config('lock_timeout', '500ms', true); ${policies} ${columns} end $wall$`,
      );
      return true;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (tries === TRIES) return false;
      // Everybody who came meanwhile stood behind us: now they go first.
      await db.run("select pg_sleep(1)");
    }
  }
}

const TRIES = 10;
