import type { Client } from "../../../client/client.ts";
import { visible } from "../print.ts";
import { showUtc } from "../words.ts";

/** What is waited for while there is no run yet: the run that is due first, of this schedule or of all. */
export async function sayWaiting(client: Client, ref: string | undefined): Promise<string> {
  const schedules =
    ref === undefined
      ? (await client.schedules.list({ status: "active", limit: 200 })).items
      : [await client.schedules.get(ref)];
  const [first] = schedules
    .filter((one) => one.status === "active" && one.nextRunAt !== null)
    .toSorted((a, b) => Date.parse(a.nextRunAt!) - Date.parse(b.nextRunAt!));
  if (first !== undefined) return visible(`Waiting for the next run (due ${showUtc(first.nextRunAt)}, ${first.name})`);
  if (ref === undefined) return "Waiting for a run (no active schedule has a next one)";
  return visible(`Waiting for a run (${schedules[0]!.name} is ${schedules[0]!.status} and has no next one)`);
}
