/** What people call a schedule; a deleted one has given its key away. Null where there is none. */
export type Called = { key: string | null; name: string } | null;

/**
 * The same, of the schedule that a row of `table` is of, as an expression of a select list: for the rows of a page. A row that
 * names a schedule of another tenant is told nothing of it.
 */
export const calledOf = (table: string) => `(select jsonb_build_object(
    'key', case when s.status <> 'deleted' then s.key end, 'name', s.name)
    from schedule s where s.id = ${table}.schedule_id and s.tenant_id = ${table}.tenant_id)`;
