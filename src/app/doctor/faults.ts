import { sql } from "../../store/database.ts";
import { type Check, finding, ok } from "./check.ts";

const READ = sql(
  "doctor_faults",
  `select schedule_id, tenant_id, fault, fault_retry_at from schedule_cursor
    where fault is not null and fault_retry_at is not null order by fault_retry_at limit 5`,
);

export const faultsCheck: Check = {
  id: "rules",
  name: "every rule can be computed",
  async examine({ careful }) {
    const rows = await careful.query(READ);
    if (rows.length === 0) return ok("no schedule has a fault");
    return finding(
      "schedules have rules that cannot be computed",
      "they have no next instant and make no runs",
      "revise these schedules, or bring back the zone or syntax they name; they are tried again every minute",
      rows,
    );
  },
};
