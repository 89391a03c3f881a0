import { randomBytes } from "node:crypto";
import { Client } from "pg";

/** Statements without a result of interest, on a connection of their own. */
async function execute(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

async function refuseWithoutDurability(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ synchronous_commit: string }>("show synchronous_commit");
  await client.end();
  const found = rows[0]?.synchronous_commit;
  if (found !== "on") throw new Error(`synchronous_commit is ${found}: the peers are measured with on, like Punctual`);
}

/**
 * Runs `measure` with the URL of a new, empty database on the server of `serverUrl`, and drops it afterwards. What earlier
 * measures left in the buffers is written out first.
 */
export async function withFreshDatabase<T>(serverUrl: string, measure: (url: string) => Promise<T>): Promise<T> {
  const name = `peer_${randomBytes(6).toString("hex")}`;
  await execute(serverUrl, `create database ${name}`, "checkpoint");
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  try {
    await refuseWithoutDurability(url.href);
    return await measure(url.href);
  } finally {
    await execute(serverUrl, `drop database ${name} with (force)`);
  }
}
