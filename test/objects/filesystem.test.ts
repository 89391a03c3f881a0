import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createFaultPoints } from "../../src/kernel/faults.ts";
import { createFilesystemStore } from "../../src/objects/filesystem.ts";
import { createObjectKey } from "../../src/objects/key.ts";
import { describeObjectStore, sha256, streamOf } from "./conformance.ts";

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "punctual-objects-"));
});
afterAll(() => rm(base, { recursive: true, force: true }));

let roots = 0;
const freshRoot = () => join(base, `root-${roots++}`, "deep");
const key = createObjectKey({ runId: "0196a0c1-5c00-8123-8abc-0123456789ab", attempt: 1, fence: 5n, name: "result" });
const plain = { mediaType: "text/plain" };

describeObjectStore("filesystem", async () => createFilesystemStore({ root: freshRoot() }));

it("leaves nothing but published objects when every upload has ended", async () => {
  const root = freshRoot();
  const store = createFilesystemStore({ root });
  await Promise.all([1, 2, 3].map(() => store.put(key, Buffer.from("x"), plain)));
  expect(await readdir(join(root, ".staging"))).toEqual([]);
});

it("a process killed between writing and publishing leaves no visible object, and its draft is cleared later", async () => {
  const root = freshRoot();
  const store = createFilesystemStore({ root });
  const script = `
    import { createFilesystemStore } from ${JSON.stringify(new URL("../../src/objects/filesystem.ts", import.meta.url).href)};
    const faults = { reach: (name) => (name === "objects.before-publish" ? process.kill(process.pid, "SIGKILL") : undefined) };
    await createFilesystemStore({ root: ${JSON.stringify(root)}, faults }).put(${JSON.stringify(key)}, Buffer.from("report"), {});
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "inherit" });
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);

  expect(await store.stat({ uri: `fs:${key}`, version: null })).toBeUndefined();
  const drafts = await readdir(join(root, ".staging"));
  expect(drafts).toHaveLength(1);

  expect(await store.put(key, Buffer.from("report"), plain)).toMatchObject({ kind: "created" });
  const long = 1_000_000_000_000;
  expect(await store.removeAbandoned(long)).toBe(0); // young: its writer may be alive
  await utimes(join(root, ".staging", drafts[0]!), long / 1000 - 60, long / 1000 - 60);
  expect(await store.removeAbandoned(long)).toBe(1);
  expect(await readdir(join(root, ".staging"))).toEqual([]);
});

it("notices bytes that changed on the disk behind its back", async () => {
  const root = freshRoot();
  const store = createFilesystemStore({ root });
  const outcome = await store.put(key, Buffer.from("report"), plain);
  if (outcome.kind !== "created") throw new Error("expected a new object");
  await rm(join(root, key));
  await writeFile(join(root, key), "rumour");
  expect(await store.verify(outcome.object, outcome.object)).toMatchObject({
    kind: "mismatch",
    field: "sha256",
    found: sha256(Buffer.from("rumour")),
  });
});

it.each([
  ["ENOSPC", "objects-disk-full", "free space"],
  ["EDQUOT", "objects-disk-full", "quota"],
  ["EACCES", "objects-not-permitted", "may not be used"],
  ["EROFS", "objects-not-permitted", "read-only"],
  ["EIO", "objects-unavailable", "cannot be used"],
])("%s while writing becomes %s, for the operator, and leaves no draft", async (code, ours, words) => {
  const root = freshRoot();
  const faults = createFaultPoints();
  const store = createFilesystemStore({ root, faults });
  faults.once("objects.write", () => undefined);
  faults.once("objects.write", () => {
    throw Object.assign(new Error(`${code}: write`), { code, errno: -1, syscall: "write" });
  });
  await expect(store.put(key, streamOf([Buffer.from("a"), Buffer.from("b")]), plain)).rejects.toMatchObject({
    code: ours,
    actor: "operator",
    message: expect.stringContaining(words),
    details: { root, cause: code },
  });
  expect(await readdir(join(root, ".staging"))).toEqual([]);
  expect(await store.stat({ uri: `fs:${key}`, version: null })).toBeUndefined();
});

it("says so when its path is a file", async () => {
  const root = join(base, "a-file");
  await writeFile(root, "");
  const store = createFilesystemStore({ root });
  await expect(store.put(key, Buffer.from("x"), plain)).rejects.toMatchObject({
    code: "objects-not-a-directory",
    actor: "operator",
  });
});
