import type { Payload, Work } from "../../domain/definition.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import type { ClaimableRun } from "../../store/rows/runs/live-runs.ts";
import { readOwnWork } from "../../store/rows/runs/own-work.ts";
import type { Authority } from "../authority.ts";

/** What a run is to do: from its immutable revision, or from its own row where it brought its own work or payload. */
export type Assignment = { work: Work; payload: Payload; maySeal: boolean };

export async function loadAssignments(
  authority: Authority,
  tx: Transaction,
  runs: readonly Pick<ClaimableRun, "id" | "scheduled_at" | "schedule_id" | "revision" | "content" | "own_work">[],
): Promise<Map<Uuid, Assignment>> {
  const keys = runs.flatMap(({ schedule_id, revision, content }) =>
    schedule_id === null || revision === null ? [] : [{ scheduleId: schedule_id, revision, content }],
  );
  await authority.revisions.load(tx, keys);
  const own = await readOwnWork(
    tx,
    runs.filter((run) => run.own_work),
  );
  return new Map(
    runs.map((run) => {
      const mine = own.get(run.id);
      if (run.schedule_id === null || run.revision === null) {
        return [run.id, { work: mine!.job!, payload: mine!.payload!, maySeal: true }];
      }
      const revision = authority.revisions.get({
        scheduleId: run.schedule_id,
        revision: run.revision,
        content: run.content,
      });
      const payload = mine?.payload ?? revision.payload;
      const maySeal = payload !== revision.payload || revision.maySeal;
      return [run.id, { work: mine?.job ?? revision.definition, payload, maySeal }];
    }),
  );
}
