import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instant } from "../kernel/clock.ts";
import { isFsCode } from "./filesystem-faults.ts";
import { type ObjectKey, readObjectKey } from "./key.ts";
import type { ListedObject, ObjectPage } from "./port.ts";

/** A page has the files of as many whole directories of runs as it takes to come to this. */
const PAGE = 1_000;

/** The files of the runs after `after`, in the order of their names. What is no object's name is passed over. */
export async function listFiles(
  root: string,
  uriOf: (key: ObjectKey) => string,
  after: string | undefined,
): Promise<ObjectPage> {
  const objects: ListedObject[] = [];
  const runs = (await namesIn(root)).filter((run) => after === undefined || run > after).sort();
  for (const [i, run] of runs.entries()) {
    for (const attempt of await namesIn(join(root, run))) {
      for (const name of await namesIn(join(root, run, attempt))) {
        const read = readObjectKey(`${run}/${attempt}/${name}`);
        const found = read && (await statIfThere(join(root, read.key)));
        if (found?.isFile()) objects.push({ uri: uriOf(read!.key), parts: read!.parts, storedAt: found.mtimeMs });
      }
    }
    if (objects.length >= PAGE && i < runs.length - 1) return { objects, next: run };
  }
  return { objects, next: undefined };
}

/** Removes the drafts that were last written before `beforeAt`; answers how many. */
export async function removeDrafts(staging: string, beforeAt: Instant): Promise<number> {
  let removed = 0;
  for (const name of await namesIn(staging)) {
    const path = join(staging, name);
    const found = await statIfThere(path); // its writer may have finished meanwhile
    if (found === undefined || found.mtimeMs >= beforeAt) continue;
    await rm(path, { force: true });
    removed++;
  }
  return removed;
}

async function namesIn(directory: string): Promise<string[]> {
  return ifThere(() => readdir(directory), []);
}

function statIfThere(path: string) {
  return ifThere(() => stat(path), undefined);
}

/** Others create and remove beside us. */
async function ifThere<T>(look: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (isFsCode(error, "ENOENT", "ENOTDIR")) return otherwise;
    throw error;
  }
}
