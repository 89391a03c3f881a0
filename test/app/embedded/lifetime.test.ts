import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

for (const signal of ["SIGKILL", "SIGINT"] as const) {
  test(`a program ended by ${signal}, with its whole process group, leaves no server and no data behind`, async () => {
    const folder = makeTemporaryFolder("punctual-owner-");
    const dataDirectory = join(folder, "postgres");
    const program = [fileURLToPath(new URL("./owner.ts", import.meta.url)), dataDirectory, inject("redisBinary")];
    const owner = spawn(process.execPath, program, { detached: true, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(owner, "exit");
    const [line] = await once(createInterface({ input: owner.stdout }), "line");
    const servers: number[] = JSON.parse(line);
    expect(servers.map(isAlive)).not.toContain(false);

    process.kill(-owner.pid!, signal);
    await exited;
    await expect.poll(() => servers.filter(isAlive)).toEqual([]);
    await expect.poll(() => existsSync(dataDirectory)).toBe(false);
    rmSync(folder, { recursive: true });
  });
}
