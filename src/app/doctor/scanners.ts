import { sql } from "../../store/database.ts";
import { type Check, finding, ok } from "./check.ts";

const COUNT = sql("doctor_scanners", "select count(*)::int as alive from scanner where expires_at > clock_timestamp()");

export const scannersCheck: Check = {
  id: "scheduler",
  name: "a scheduler is alive",
  async examine({ db }) {
    const [row] = await db.query<{ alive: number }>(COUNT);
    if (row!.alive > 0) return ok(`${row!.alive} alive`);
    return finding("no scheduler is alive", "schedules that are due do not become runs", "start `punctual scheduler`");
  },
};
