import { Redis } from "ioredis";
import pg from "pg";
import { expect, test } from "vitest";
import { createTestDatabase } from "../../support/postgres.ts";
import { redisAvailable, startTestRedis, testRedis } from "../../support/redis.ts";

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("two test databases are clones that do not see each other", async () => {
  const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  await query(one.url, "create table mine (id int)");
  expect(await query(one.url, "select to_regclass('mine') as found")).toEqual([{ found: "mine" }]);
  expect(await query(other.url, "select to_regclass('mine') as found")).toEqual([{ found: null }]);
  await Promise.all([one.drop(), other.drop()]);
});

test("a dropped test database throws out who is still connected", async () => {
  const database = await createTestDatabase();
  const visitor = new pg.Client(database.url);
  visitor.on("error", () => undefined);
  await visitor.connect();
  await database.drop();
  await expect(query(database.url, "select 1")).rejects.toThrow(/does not exist/);
});

if (redisAvailable) {
  test("flushing a private Redis leaves the shared one alone", async () => {
    const shared = testRedis();
    const sharedClient = new Redis(shared.url);
    await sharedClient.set(`${shared.prefix}:kept`, "yes");
    const alone = await startTestRedis();
    const client = new Redis(alone.url);
    await client.flushall();
    expect(await sharedClient.get(`${shared.prefix}:kept`)).toBe("yes");
    expect(await client.config("GET", "maxmemory-policy")).toContain("noeviction");
    client.disconnect();
    sharedClient.disconnect();
    await alone.stop();
  });
}
