import { findWallGaps } from "../../../store/reads/wall/gaps.ts";
import { READER } from "../../../store/reads/wall/tables.ts";
import { type Check, finding, ok } from "../check.ts";

const CONSEQUENCE = "reads of the API have one wall between tenants, their WHERE clauses, and no second one";

/** Reads go on without it, so nobody else would notice. */
export const wallCheck: Check = {
  id: "wall",
  name: "reads are held to their tenant by PostgreSQL, too",
  async examine({ db }) {
    const { role, we, tables } = await findWallGaps(db);
    switch (role) {
      case "missing":
        return finding(
          `there is no role ${READER}, and ${we} may not create one`,
          CONSEQUENCE,
          `as a role that may: \`create role ${READER} nologin; grant ${READER} to "${we}"\`; then \`punctual migrate\``,
        );
      case "not-ours":
        return finding(
          `${we} may not act as ${READER}`,
          CONSEQUENCE,
          `as a role that may: \`grant ${READER} to "${we}"\`; then \`punctual migrate\``,
        );
      case "above":
        return finding(
          `${READER} is a superuser or has BYPASSRLS: row-level security does not hold it`,
          CONSEQUENCE,
          `\`alter role ${READER} nosuperuser nobypassrls\``,
        );
      case "there":
        if (tables.length === 0) return ok(`the API reads as ${READER}, which sees one tenant at a time`);
        return finding(
          `${tables.length} tables are not, or not all, behind it`,
          CONSEQUENCE,
          "`punctual migrate`, as the role that owns the tables",
          tables.map((table) => ({ table })),
        );
    }
  },
};
