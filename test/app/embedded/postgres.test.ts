import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../../src/app/embedded/postgres.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";

let folder: string;
let dataDirectory: string;
let running: PostgresServer[] = [];
let lines: string[] = [];

beforeEach(() => {
  folder = makeTemporaryFolder("punctual-pg-");
  dataDirectory = join(folder, ".punctual", "postgres");
  lines = [];
});

afterEach(async () => {
  await Promise.all(running.map((server) => server.stop()));
  running = [];
  rmSync(folder, { recursive: true, force: true });
});

async function start(options: { port?: number; in?: string } = {}): Promise<PostgresServer> {
  const server = await startPostgres({
    dataDirectory: options.in ?? dataDirectory,
    ...(options.port === undefined ? {} : { port: options.port }),
    settings: { fsync: "off", shared_buffers: "16MB" },
    log: (line) => lines.push(line),
  });
  running.push(server);
  return server;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("data written before a stop is there after the next start", async () => {
  const first = await start();
  await query(first.url, "create table kept as select 42 as answer");
  expect(await query(first.url, "show synchronous_commit")).toEqual([{ synchronous_commit: "on" }]);
  await first.stop();
  await expect(query(first.url, "select 1")).rejects.toThrow();
  const second = await start();
  expect(await query(second.url, "select answer from kept")).toEqual([{ answer: 42 }]);
});

test("two servers side by side take different ports and different passwords", async () => {
  const [one, other] = await Promise.all([start(), start({ in: join(folder, "other") })]);
  expect(one.port).not.toBe(other.port);
  await query(one.url, "create table mine (id int)");
  expect(await query(other.url, "select to_regclass('mine') as found")).toEqual([{ found: null }]);
  const stranger = new URL(one.url);
  stranger.password = new URL(other.url).password;
  await expect(query(stranger.href, "select 1")).rejects.toThrow(/password authentication failed/);
});

test("a server killed in the middle of its work is started again over its own postmaster.pid", async () => {
  const first = await start();
  await query(first.url, "create table kept as select 42 as answer");
  process.kill(first.pid, "SIGKILL");
  await first.exited;
  const second = await start();
  expect(await query(second.url, "select answer from kept")).toEqual([{ answer: 42 }]);
});

test("a postmaster.pid whose number now belongs to another program does not stop the start", async () => {
  const [first, another] = await Promise.all([start(), start({ in: join(folder, "another") })]);
  await first.stop();
  writeFileSync(join(dataDirectory, "cluster", "postmaster.pid"), `${another.pid}\n${dataDirectory}/cluster\n`);
  const second = await start();
  expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a second start on a directory in use is refused with the process that holds it", async () => {
  const first = await start();
  await expect(start()).rejects.toMatchObject({
    code: "data-directory-in-use",
    actor: "operator",
    details: { pid: first.pid },
  });
  expect(await query(first.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("data of another PostgreSQL version is left alone, and the error names both versions", async () => {
  const first = await start();
  await first.stop();
  writeFileSync(join(dataDirectory, "cluster", "PG_VERSION"), "15\n");
  await expect(start()).rejects.toThrow(/belongs to PostgreSQL 15, but this Punctual comes with PostgreSQL 18/);
  expect(readFileSync(join(dataDirectory, "cluster", "PG_VERSION"), "utf8")).toBe("15\n");
});

test("a start that was cut short while making the cluster does not trip the next one", async () => {
  mkdirSync(join(dataDirectory, "cluster.new", "base"), { recursive: true });
  const server = await start();
  expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a port asked for and taken is an error that names it", async () => {
  const squatter = createServer();
  await new Promise<void>((listening) => squatter.listen(0, "127.0.0.1", listening));
  const address = squatter.address();
  const port = typeof address === "object" && address ? address.port : 0;
  await expect(start({ port })).rejects.toMatchObject({ code: "port-taken", details: { port } });
  squatter.close();
});

// Other users are never kept away from their own directories.
if (process.getuid?.() === 0) {
  test("below a directory that only root may enter, the data is kept elsewhere and found again", async () => {
    chmodSync(folder, 0o700);
    const first = await start();
    expect(lstatSync(dataDirectory).isSymbolicLink()).toBe(true);
    expect(lines.join("\n")).toMatch(/its data is kept in \/var\/lib\/punctual\//);
    await query(first.url, "create table kept as select 42 as answer");
    await first.stop();
    const second = await startPostgres({ dataDirectory, lifetime: "discarded", log: () => undefined });
    running.push(second);
    expect(await query(second.url, "select answer from kept")).toEqual([{ answer: 42 }]);
  });
}
