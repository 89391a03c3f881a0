import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, inject, test } from "vitest";
import { findRedisBinary, startRedis } from "../../../src/app/embedded/redis.ts";
import { redisAvailable, startTestRedis } from "../../support/redis.ts";

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "punctual redis-")); // with a space, as folders of people have
}

test("redis-server is preferred to valkey-server, and files that cannot be executed are passed over", () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  writeFileSync(join(one, "redis-server"), "not executable", { mode: 0o644 });
  writeFileSync(join(one, "valkey-server"), "", { mode: 0o755 });
  expect(findRedisBinary(`${one}:${other}`)).toBe(join(one, "valkey-server"));
  writeFileSync(join(other, "redis-server"), "", { mode: 0o755 });
  expect(findRedisBinary(`${one}:${other}`)).toBe(join(other, "redis-server"));
  expect(findRedisBinary("")).toBeUndefined();
  expect(findRedisBinary(undefined)).toBeUndefined();
  for (const folder of [one, other]) rmSync(folder, { recursive: true });
});

if (redisAvailable) {
  test("a Redis with a data directory keeps what it was told over a stop and a start", async () => {
    const dataDirectory = join(temporaryFolder(), "redis");
    const first = await startTestRedis({ dataDirectory });
    const writer = new Redis(first.url);
    await writer.set("kept", "yes");
    await first.stop();
    writer.disconnect();
    const second = await startTestRedis({ dataDirectory });
    const reader = new Redis(second.url);
    expect(await reader.get("kept")).toBe("yes");
    reader.disconnect();
    await second.stop();
    rmSync(join(dataDirectory, ".."), { recursive: true });
  });

  test("a frozen Redis can still be stopped", async () => {
    const redis = await startTestRedis();
    process.kill(redis.pid, "SIGSTOP");
    await redis.stop();
    expect(() => process.kill(redis.pid, 0)).toThrow(/ESRCH/);
  });

  test("a port asked for and taken is an error that names it", async () => {
    const first = await startTestRedis();
    const second = startRedis({ binary: inject("redisBinary"), port: first.port, log: () => undefined });
    await expect(second).rejects.toMatchObject({ code: "port-taken", details: { port: first.port } });
    await first.stop();
  });
}

test("a server that is not Redis at all is an error with its last words", async () => {
  const folder = temporaryFolder();
  const binary = join(folder, "redis-server");
  writeFileSync(binary, "#!/bin/sh\necho something broke >&2\nexit 3\n");
  chmodSync(binary, 0o755);
  const failed = startRedis({ binary, log: () => undefined });
  await expect(failed).rejects.toThrow("Redis did not start. It said: something broke");
  rmSync(folder, { recursive: true });
});
