import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Definition } from "../../src/domain/definition.ts";
import { allSucceed, type ChildNode, countRuns, spawnNode, startNode, until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createWorld } from "../support/world.ts";

/** What each of the frozen worker's attempts has to say when it wakes up. */
const WORDS = ["succeed", "output", "fail"];

// Answer by answer the same is told in test/authority/attempts/late-worker.test.ts; here a whole process says it.
test("B29 a worker that is frozen past its leases and wakes up when another has done its work changes nothing, whatever it says", async () => {
  const world = await createWorld();
  const folder = makeTemporaryFolder("punctual-frozen-");
  const [file, go] = [join(folder, "traces"), join(folder, "go")];
  // Frozen in the middle of a transaction, it holds its rows for one verb deadline.
  const node = { leases: "short" as const, url: world.url, config: { PUNCTUAL_VERB_DEADLINE_MS: "2000" } };
  const sweeper = await startNode({ ...node, roles: ["sweeper"] });
  const frozen = await spawnNode({ ...node, roles: ["worker"] });
  let heir: ChildNode | undefined;
  onTestFinished(async () => {
    await frozen.kill();
    await heir?.kill();
    await sweeper.stop();
    rmSync(folder, { recursive: true, force: true });
    await world.check();
    await world.close();
  });
  const work = {
    job: { kind: "function", name: "test.linger", version: 1 },
    retry: { maxAttempts: 10, maxElapsedMs: 600_000, baseMs: 1, capMs: 100 },
  } satisfies Partial<Definition>;
  const ids = await Promise.all(
    WORDS.map((first) => world.newSchedule({ ...work, key: first, payload: { file, go, first } })),
  );
  for (const id of ids) await world.makeDue(id);
  await world.materialize(ids);

  await until("A has them", async () => (await countRuns(world.admin)).running === WORDS.length);
  await until("A is at them", () => tracesOf(file).length === WORDS.length);
  process.kill(frozen.pid, "SIGSTOP");
  heir = await spawnNode({ ...node, roles: ["worker"] });
  await allSucceed(world.admin, WORDS.length);
  const tables = ["run", "attempt", "live_run", "outbox", "dead_letter"];
  const read = async () =>
    Object.fromEntries(
      await Promise.all(
        tables.map(async (table) => [table, (await world.admin.query(`select * from ${table} order by 1, 2, 3`)).rows]),
      ),
    );
  const before = await read();
  const o2 = createHash("sha256").update("O2").digest("hex");
  for (const run of before.run) expect(run).toMatchObject({ state: "succeeded", result_sha256: o2, error_code: null });
  const firsts = before.attempt.filter((one: { n: number }) => one.n === 1);
  expect(firsts).toHaveLength(WORDS.length);
  for (const one of firsts)
    expect(one).toMatchObject({ outcome: "expired", error_code: "lease-expired", progress: null });

  writeFileSync(go, "");
  process.kill(frozen.pid, "SIGCONT");
  const lingered = () => tracesOf(file).filter((line) => line.includes("lingered"));
  await until("A finishes", () => lingered().length === WORDS.length);
  // It says all that it has to say before it ends.
  await frozen.stop();
  expect(await read()).toEqual(before);
});

function tracesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
}
