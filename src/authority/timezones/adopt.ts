import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { adoptTzVersion, findAdopted, listTzVersions, lockTzVersions } from "../../store/rows/tz-data.ts";
import type { Authority } from "../authority.ts";
import { openTzVersion } from "./open-data.ts";

export type AdoptOutcome =
  | { kind: "adopted"; before: string | undefined }
  | { kind: "already-adopted" }
  | { kind: "not-found"; known: string[] };

/** What concerns every tenant is told under an id that no tenant has. */
export const SYSTEM: Uuid = NIL_ID;

/**
 * Has everybody go by another version of the tz database. Running processes notice within seconds; schedules are planned
 * anew when they are touched, and by the replanner, the earliest first.
 * Locks   tz_data.
 * Writes  tz_data, audit_event.
 * Errors  `tz-data-corrupt`: nobody could open that version.
 * Replay  `already-adopted`.
 */
export async function adoptTzData(
  authority: Authority,
  request: { actor: string; version: string },
): Promise<AdoptOutcome> {
  const { actor, version } = request;
  return authority.transact<AdoptOutcome>("adopt-tz", async (tx) => {
    await lockTzVersions(tx);
    const before = (await findAdopted(tx))?.version;
    if (before === version) return { kind: "already-adopted" };
    if ((await openTzVersion(tx, version)) === undefined) {
      return { kind: "not-found", known: (await listTzVersions(tx)).map((row) => row.version) };
    }
    await adoptTzVersion(tx, version);
    await writeAudit(tx, {
      tenantId: SYSTEM,
      actor,
      action: "tz-data.adopt",
      subject: version,
      before: { version: before },
      after: { version },
    });
    return { kind: "adopted", before };
  });
}
