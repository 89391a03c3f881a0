import { type Queryable, sql } from "../../database.ts";
import { OPENINGS, READER } from "./tables.ts";

/** What is missing of the second wall. */

const ROLE = sql(
  "wall_role",
  `select r.oid is not null as "exists", coalesce(r.rolsuper or r.rolbypassrls, false) as "isAbove",
          case when r.oid is null then false
               else pg_has_role(current_user, r.oid, case when current_setting('server_version_num')::int >= 160000
                                                          then 'SET' else 'MEMBER' end) end as "mayBe",
          current_user::text as "we"
     from (select 1) one left join pg_roles r on r.rolname = $1`,
);
// What was written is kept beside what PostgreSQL made of it, which reads otherwise.
const TABLES = sql(
  "wall_tables",
  `select w.name, c.relrowsecurity as "isOn", p.oid is not null and p.polpermissive is false as "isGuarded",
          obj_description(p.oid, 'pg_policy') as rows,
          exists (select from pg_policy e where e.polrelid = c.oid and e.polname = 'everybody') as "isOpen",
          not exists (select from pg_attribute a
                       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                         and has_column_privilege($2::name, c.oid, a.attnum, 'select')
                             = (a.attname = any (string_to_array(w.hidden, ',')))) as "isGranted"
     from unnest($1::text[], $3::text[]) as w (name, hidden)
     join pg_class c on c.oid = to_regclass(w.name)
     left join pg_policy p on p.polrelid = c.oid and p.polname = 'reader_of_a_tenant'
    order by w.name`,
);

type TableState = {
  name: string;
  isOn: boolean;
  isGuarded: boolean;
  rows: string | null;
  isOpen: boolean;
  isGranted: boolean;
};

export type WallGaps = { role: "there" | "missing" | "above" | "not-ours"; we: string; tables: string[] };

/** `role`: whether there is one that we may be, and that row-level security holds for. `tables`: where it does not stand. */
export async function findWallGaps(db: Queryable): Promise<WallGaps> {
  const [role] = await db.query<{ exists: boolean; isAbove: boolean; mayBe: boolean; we: string }>(ROLE, [READER]);
  const { exists, isAbove, mayBe, we } = role!;
  if (!exists) return { role: "missing", we, tables: Object.keys(OPENINGS) };
  const states = await db.query<TableState>(TABLES, [
    Object.keys(OPENINGS),
    READER,
    Object.values(OPENINGS).map((one) => (one.hidden ?? []).join()),
  ]);
  const tables = states.filter((state) => !stands(state)).map((state) => state.name);
  return { role: isAbove ? "above" : mayBe ? "there" : "not-ours", we, tables };
}

function stands({ name, isOn, isGuarded, rows, isOpen, isGranted }: TableState): boolean {
  const wanted = OPENINGS[name]!;
  if (!isGranted) return false;
  return wanted.rows === undefined || (isOn && isGuarded && isOpen && rows === wanted.rows);
}
