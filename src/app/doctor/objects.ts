import type { Uuid } from "../../kernel/ids.ts";
import type { ObjectStore } from "../../objects/port.ts";
import { sql } from "../../store/database.ts";
import { type Check, finding, ok, skipped } from "./check.ts";

const EACH_SIDE = 25;
/** Of the newest, so many are read and compared; larger ones are only measured. */
const READ = 5;
const READ_BYTES = 1 << 20;

// Ids sort by time: the newest, and the oldest that should still be there.
const SAMPLE = sql(
  "doctor_objects",
  `(select id, run_id, uri, version, sha256, size from object where state = 'referenced' order by id desc limit $1)
   union
   (select id, run_id, uri, version, sha256, size from object where state = 'referenced' order by id limit $1)
   order by id desc`,
);
const STILL_RESULTS = sql(
  "doctor_objects_still",
  "select id from object where id = any($1::uuid[]) and state = 'referenced'",
);
const STUCK = sql(
  "doctor_objects_stuck",
  `select id, run_id, uri, clean_tries from object
    where state = 'deleting' and deleting_at < clock_timestamp() - interval '1 day'
    order by clean_at limit $1`,
);

type Row = { id: Uuid; run_id: Uuid; uri: string; version: string | null; sha256: string; size: bigint };

export const objectsCheck: Check = {
  id: "objects",
  name: "results are where they should be (a sample), and others have gone",
  async examine({ careful, objects }) {
    const sample = await careful.query<Row>(SAMPLE, [EACH_SIDE]);
    const suspects: { id: Uuid }[] = [];
    let unread = READ;
    for (const row of sample) {
      const isRead = Number(row.size) <= READ_BYTES && unread-- > 0;
      const wrong = await findWrong(objects, row, isRead);
      if (wrong !== undefined)
        suspects.push({ id: row.id, run_id: row.run_id, uri: row.uri, ...wrong } as { id: Uuid });
    }
    // What the cleaner took away meanwhile is no result any more.
    const still = new Set(
      (await careful.query<{ id: Uuid }>(STILL_RESULTS, [suspects.map((one) => one.id)])).map((row) => row.id),
    );
    const wrong = suspects.filter((one) => still.has(one.id));
    if (wrong.length > 0) {
      return finding(
        `${wrong.length} of ${sample.length} results are missing or are not what was accepted`,
        "who asks for these results gets an error, or something else than was accepted",
        "where workers write elsewhere, set PUNCTUAL_OBJECTS and what belongs to it as they do; else restore from a backup",
        wrong.slice(0, 5),
      );
    }
    const stuck = await careful.query(STUCK, [EACH_SIDE]);
    if (stuck.length > 0) {
      return finding(
        `${stuck.length === EACH_SIDE ? "many" : stuck.length} objects should have been deleted over a day ago`,
        "the store fills with what nobody needs",
        "see that a sweeper runs, and in its log why the object store refuses",
        stuck.slice(0, 5),
      );
    }
    return sample.length === 0 ? skipped("there are no results yet") : ok(`${sample.length} looked at`);
  },
};

async function findWrong(objects: ObjectStore, row: Row, isRead: boolean): Promise<object | undefined> {
  const size = Number(row.size);
  if (isRead) {
    const found = await objects.verify(row, { sha256: row.sha256, size });
    return found.kind === "intact" ? undefined : found;
  }
  const found = await objects.stat(row);
  return found?.size === size ? undefined : { expected: size, found: found?.size ?? null };
}
