import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { bug } from "../../kernel/errors.ts";
import type { Queryable, Transaction } from "../../store/database.ts";
import { hasCursors } from "../../store/rows/stale-cursors.ts";
import {
  adoptTzVersion,
  findAdopted,
  finishReplanning,
  insertTzVersion,
  listTzVersions,
  lockTzVersions,
} from "../../store/rows/tz-data.ts";
import type { Authority } from "../authority.ts";
import { openTzVersion } from "./open-data.ts";

/** Data that could be adopted: what a release brings along, or what an operator put beside it. */
export type TzCandidate = { readonly version: string; readonly sha256: Uint8Array; readonly bytes: Uint8Array };

/**
 * What every process does before it computes anything: makes its own data known as a candidate, adopts it only where
 * nothing is adopted yet (the first start), and goes by the adopted version, whatever it brought along. So old and new
 * releases compute from the same bytes, and a deploy changes no instant.
 * Locks   tz_data, at the first start only: of two that come at once, the second finds the first one's.
 * Errors  `tz-data-corrupt`, for an operator.
 */
export async function pinZones(authority: Authority, candidate: TzCandidate): Promise<void> {
  const version = await makeKnown(authority, candidate);
  if ((await findAdopted(authority.db)) === undefined) {
    await authority.transact("adopt-first-tz", async (tx) => {
      await lockTzVersions(tx);
      if ((await findAdopted(tx)) !== undefined) return;
      await adoptTzVersion(tx, version);
      // A new installation has nothing that another version planned.
      if (!(await hasCursors(tx))) await finishReplanning(tx, version);
    });
  }
  const adopted = (await findAdopted(authority.db))!;
  // From the row even where the name is the candidate's: a name is no proof of the bytes.
  authority.pinned.turnTo((await openVersion(authority, authority.db, adopted.version))!);
}

/** Inserts a candidate that no row has yet; answers the version it is known by. */
export async function makeKnown(authority: Authority, candidate: TzCandidate): Promise<string> {
  const { version, sha256, bytes } = candidate;
  const hash = Buffer.from(sha256).toString("hex");
  // Two builds of one IANA release (another packing, other choices of history) are two versions.
  for (const name of [version, `${version}-${hash.slice(0, 8)}`]) {
    const known = (await listTzVersions(authority.db)).find((row) => Buffer.from(row.sha256).toString("hex") === hash);
    if (known !== undefined) return known.version;
    if (await insertTzVersion(authority.db, { version: name, sha256, bytes })) {
      authority.log.info({ tzVersion: name, sha256: hash }, "a tz database that was not known is a candidate now");
      return name;
    }
  }
  throw bug("a tz database has the name of two others", { version, sha256: hash });
}

/**
 * Goes by the adopted version from now on, if it is not the one this process goes by; answers whether that changed.
 * Inside a transaction, that transaction too goes by it: it has computed nothing yet.
 */
export async function followAdoption(authority: Authority, db: Queryable | Transaction): Promise<boolean> {
  const { pinned } = authority;
  const adopted = await findAdopted(db);
  if (adopted === undefined || adopted.version === authority.tzVersion) return false;
  const before = authority.tzVersion;
  pinned.turnTo((await openVersion(authority, db, adopted.version))!);
  authority.log.info({ tzVersion: adopted.version, before }, "this process goes by another tz database now");
  return true;
}

/** The data of any version there is a row of; kept, since bytes of a version never change. */
export async function openVersion(
  authority: Authority,
  db: Queryable,
  version: string,
): Promise<ZoneSource | undefined> {
  const { opened } = authority.pinned;
  const known = opened.get(version);
  if (known !== undefined) return known;
  const zones = await openTzVersion(db, version);
  if (zones !== undefined) opened.set(version, zones);
  return zones;
}
