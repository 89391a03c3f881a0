import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, link, mkdir, open, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { operatorError } from "../kernel/errors.ts";
import { type FaultPoints, noFaults } from "../kernel/faults.ts";
import { asFsFault, isFsCode } from "./filesystem-faults.ts";
import { listFiles, removeDrafts } from "./filesystem-walks.ts";
import { type ObjectKey, parseObjectKey } from "./key.ts";
import type { Bytes, ObjectStore, StoredObject } from "./port.ts";
import { chunksOf, SourceFailed } from "./source.ts";

/**
 * Objects as files under one directory, for one machine or a shared POSIX file system with hard links.
 *
 *   <root>/<run>/<attempt>/<name>   whole, immutable, read-only
 *   <root>/.staging/<uuid>          being written; a key cannot begin with a dot, so the two never meet
 *
 * Publishing is link(2): it makes the finished file visible under its name, or fails because the name is taken. That
 * is the conditional create; rename(2) would overwrite. URIs do not contain the root, so it may move.
 */
export function createFilesystemStore(options: { root: string; faults?: FaultPoints }): ObjectStore {
  const root = resolve(options.root);
  const staging = join(root, STAGING);
  const faults = options.faults ?? noFaults;
  const explained = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw error instanceof SourceFailed ? error.cause : asFsFault(error, root);
    }
  };
  const pathOf = (uri: string) => join(root, keyOf(uri));
  const uriOf = (key: ObjectKey) => SCHEME + key;

  async function put(key: ObjectKey, bytes: Bytes, signal?: AbortSignal) {
    const uri = uriOf(key);
    const target = join(root, key);
    if (await exists(target)) return { kind: "exists", uri } as const; // the ordinary repeat: do not write it all again
    await makeDirectory(staging);
    const draft = join(staging, randomUUID());
    try {
      const written = await writeDraft(draft, chunksOf(bytes, signal), faults);
      await faults.reach("objects.before-publish");
      if (!(await publish(draft, target))) return { kind: "exists", uri } as const;
      return { kind: "created", object: { uri, version: written.sha256, ...written } } as const;
    } finally {
      await rm(draft, { force: true });
    }
  }

  async function verify(uri: string, expected: { sha256: string; size: number }) {
    const handle = await openIfThere(pathOf(uri));
    if (handle === undefined) return { kind: "missing" } as const;
    await using closing = handle;
    const { size } = await closing.stat();
    if (size !== expected.size) return mismatch("size", expected.size, size);
    const found = await hashOf(closing);
    if (found !== expected.sha256) return mismatch("sha256", expected.sha256, found);
    const object: StoredObject = { uri, version: found, sha256: found, size };
    return { kind: "intact", object } as const;
  }

  return {
    prepare: async () => undefined,
    uriOf,
    put: (key, bytes, { signal }) => explained(put(key, bytes, signal)),
    verify: async ({ uri }, expected) => explained(verify(uri, expected)),
    stat: async ({ uri }) => explained(findStat(uri, pathOf(uri))),
    open: async ({ uri }) => (await explained(getHandle(uri, pathOf(uri)))).createReadStream(),
    downloadLink: async () => undefined,
    uploadLink: async () => undefined,
    remove: async (uri) => explained(removeFile(pathOf(uri))),
    removeAbandoned: (beforeAt) => explained(removeDrafts(staging, beforeAt)),
    list: (after) => explained(listFiles(root, uriOf, after)),
  };
}

const SCHEME = "fs:";
const STAGING = ".staging";
const READ_ONLY = 0o440;

function keyOf(uri: string): ObjectKey {
  if (!uri.startsWith(SCHEME)) {
    throw operatorError("object-elsewhere", "An object lives in another store than the one configured", { uri });
  }
  return parseObjectKey(uri.slice(SCHEME.length));
}

async function writeDraft(path: string, chunks: AsyncIterable<Uint8Array>, faults: FaultPoints) {
  await using draft = await open(path, "wx", READ_ONLY);
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of chunks) {
    await faults.reach("objects.write");
    await draft.appendFile(chunk); // unlike write(), never short
    hash.update(chunk);
    size += chunk.byteLength;
  }
  await draft.sync();
  return { sha256: hash.digest("hex"), size };
}

/** Makes `draft` visible as `target`; answers false when the name is taken. */
async function publish(draft: string, target: string): Promise<boolean> {
  for (let left = 5; ; left--) {
    try {
      await makeDirectory(dirname(target));
      await link(draft, target);
      await syncDirectory(dirname(target));
      return true;
    } catch (error) {
      if (isFsCode(error, "EEXIST")) return false;
      // remove() tidies empty directories and may take ours between the two calls.
      if (!isFsCode(error, "ENOENT") || left === 0) throw error;
    }
  }
}

/** mkdir -p that survives a power cut: each parent of a new directory is synced. */
async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncDirectory(dirname(made));
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}

async function hashOf(handle: FileHandle): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of handle.createReadStream({ autoClose: false, start: 0 })) hash.update(chunk);
  return hash.digest("hex");
}

async function exists(path: string): Promise<boolean> {
  return (await sizeOf(path)) !== undefined;
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isFsCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function findStat(uri: string, path: string) {
  const size = await sizeOf(path);
  return size === undefined ? undefined : { uri, size };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (isFsCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function getHandle(uri: string, path: string): Promise<FileHandle> {
  const handle = await openIfThere(path);
  if (handle === undefined) throw operatorError("object-missing", "An object is not in the object store", { uri });
  return handle;
}

async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true });
  const attempt = dirname(path);
  for (const directory of [attempt, dirname(attempt)]) {
    try {
      await rmdir(directory);
      await syncDirectory(dirname(directory));
    } catch (error) {
      // Not empty any more, or another cleanup was here first. A file that comes back after a power cut is removed again.
      if (isFsCode(error, "ENOTEMPTY", "ENOENT", "EEXIST")) return;
      throw error;
    }
  }
}

function mismatch(field: "size" | "sha256", expected: string | number, found: string | number) {
  return { kind: "mismatch", field, expected: String(expected), found: String(found) } as const;
}
