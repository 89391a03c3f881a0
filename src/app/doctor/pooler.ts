import { sql } from "../../store/database.ts";
import { type Check, finding, ok, type Patient, skipped } from "./check.ts";

const READ_PORT = sql("doctor_port", "select inet_server_port() as port");
const PROBE = sql("doctor_probe", "select $1::int as n");
const PROBES = 40;

/**
 * A pooler is told by its port, which is not the server's. Its age is told by what it can do: PgBouncer before 1.21
 * forgets prepared statements between transactions.
 */
export const poolerCheck: Check = {
  id: "pooler",
  name: "a pooler in between keeps prepared statements",
  async examine(patient) {
    const [row] = await patient.db.query<{ port: number | null }>(READ_PORT);
    const port = Number(new URL(patient.databaseUrl).port || 5432);
    if (row!.port === null || row!.port === port) return skipped("none is in between");
    const reason = await probe(patient);
    if (reason === undefined) return ok(`something listens on ${port} for the server on ${row!.port}, and keeps them`);
    return finding(
      `what listens on port ${port} is not the server (port ${row!.port}) and loses prepared statements: ${reason}`,
      "every process fails now and then, and works slowly",
      "use PgBouncer 1.21 or newer with max_prepared_statements above 0, or no pooler",
    );
  },
};

async function probe({ db }: Patient): Promise<string | undefined> {
  try {
    await Promise.all(Array.from({ length: PROBES }, (_, n) => db.query(PROBE, [n])));
    return undefined;
  } catch (error) {
    // Prepared statement not found, or found where it should not be.
    if (["26000", "42P05"].includes(String((error as { code?: unknown }).code))) return (error as Error).message;
    throw error;
  }
}
