import type { Client } from "../../../client/client.ts";
import type { Run } from "../../../client/types.ts";
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

/** For whom a run of a remote job waits, where nobody who does it was heard of lately; null: for nobody in particular. */
export async function sayAwaitedWorker(client: Client, { job, state, heldBy }: Run): Promise<string | null> {
  const isWaiting = (state === "queued" || state === "retrying") && (heldBy === null || heldBy === "none");
  if (!isWaiting || job?.kind !== "remote") return null;
  const wanted = `${job.name}@${job.version}`;
  if ((await client.workers.list()).items.some((one) => one.jobs.includes(wanted))) return null;
  return `a worker that does ${wanted} (none was heard of lately)`;
}
