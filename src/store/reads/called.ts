/** What people call a schedule; a deleted one has given its key away. Null where there is none. */
export type Called = { key: string | null; name: string } | null;

/** The same, of the schedule whose id is in this column, as an expression of a select list: for the rows of a page. */
export const calledOf = (column: string) => `(select jsonb_build_object(
    'key', case when s.status <> 'deleted' then s.key end, 'name', s.name) from schedule s where s.id = ${column})`;
