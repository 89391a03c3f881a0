import { followAdoption } from "../../../authority/timezones/pin-zones.ts";
import { countBehind } from "../../../authority/timezones/replan-walk.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { findAdopted, listTzVersions } from "../../../store/rows/tz-data.ts";
import type { Config } from "../../config.ts";
import { printJson, printLine, printTable } from "../print.ts";
import type { TzdbOptions } from "./tz-commands.ts";
import { withDatabase } from "./with-database.ts";

type Row = Awaited<ReturnType<typeof listTzVersions>>[number];

export async function showTzdb(config: Config, options: TzdbOptions): Promise<void> {
  await withDatabase(config, async (core) => {
    const rows = await listTzVersions(core.db);
    const adopted = (await findAdopted(core.db))?.version;
    const isWhole = rows.find((row) => row.version === adopted)?.isWhole ?? false;
    if (isWhole) await followAdoption(core.authority, core.db);
    const behind = isWhole ? await countBehind(core.authority) : null;
    const { zones, sha256 } = core.tzCandidate;
    if (options.json) {
      const versions = rows.map((row) => ({
        version: row.version,
        state: stateOf(row, adopted),
        sha256: hex(row),
        adoptedAt: row.adopted_at === null ? null : show(row.adopted_at),
        replannedAt: row.replanned_at === null ? null : show(row.replanned_at),
      }));
      printJson({ adopted: adopted ?? null, behind, brings: { version: zones.version, sha256 }, versions });
      return;
    }
    printTable(
      ["VERSION", "STATE", "ADOPTED (UTC)", "SCHEDULES", "SHA-256"],
      rows.map((row) => [
        row.version,
        stateOf(row, adopted),
        row.adopted_at === null ? "" : show(row.adopted_at),
        row.version === adopted ? progressOf(row, behind) : "",
        hex(row),
      ]),
    );
    if (adopted === undefined) printLine("None is adopted: the first process that starts adopts what it brings.");
    printLine(`This program brings ${zones.version} (sha256 ${sha256}).`);
  });
}

function stateOf(row: Row, adopted: string | undefined): string {
  const state = row.version === adopted ? "adopted" : row.adopted_at === null ? "candidate" : "adopted before";
  return row.isWhole ? state : `${state}, broken`;
}

function progressOf(row: Row, behind: number | null): string {
  if (row.replanned_at !== null) return "all looked at";
  return behind === null ? "" : `being looked at: ${behind} of the next 10,000 to move`;
}

function show(at: Instant): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
}

function hex(row: Row): string {
  return Buffer.from(row.sha256).toString("hex");
}
