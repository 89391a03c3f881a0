/** SQL for the least id a run of this instant may have; ids sort by time, so a period of runs is a range of ids. */
export const firstRunId = (at: string) =>
  `(lpad(to_hex((extract(epoch from ${at}::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;
