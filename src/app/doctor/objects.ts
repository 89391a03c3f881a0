import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { type Check, finding, ok, skipped } from "./check.ts";

const EACH_SIDE = 25;

// Ids sort by time: the newest, and the oldest that should still be there.
const SAMPLE = sql(
  "doctor_objects",
  `(select id, run_id, uri, version, size from object where state = 'referenced' order by id desc limit $1)
   union
   (select id, run_id, uri, version, size from object where state = 'referenced' order by id limit $1)`,
);

type Row = { id: Uuid; run_id: Uuid; uri: string; version: string | null; size: bigint };

export const objectsCheck: Check = {
  id: "objects",
  name: "results are where they should be (a sample)",
  async examine({ careful, objects }) {
    const sample = await careful.query<Row>(SAMPLE, [EACH_SIDE]);
    if (sample.length === 0) return skipped("there are no results yet");
    const wrong: object[] = [];
    for (const { id, run_id, uri, version, size } of sample) {
      const found = await objects.stat({ uri, version });
      if (found?.size !== Number(size))
        wrong.push({ id, run_id, uri, expected: Number(size), found: found?.size ?? null });
    }
    if (wrong.length === 0) return ok(`${sample.length} looked at`);
    return finding(
      `${wrong.length} of ${sample.length} results are missing or have another size`,
      "who asks for these results gets an error, or something else than was accepted",
      "where workers write elsewhere, set PUNCTUAL_OBJECTS_DIR as they do; else restore the files from a backup",
      wrong.slice(0, 5),
    );
  },
};
