import { join, resolve } from "node:path";
import { createFilesystemStore } from "../objects/filesystem.ts";
import type { ObjectStore } from "../objects/port.ts";
import type { Config } from "./config.ts";

/** Where results go: a directory that every worker and API replica shares. */
export function openObjects(config: Config): ObjectStore {
  return createFilesystemStore({ root: resolve(config.PUNCTUAL_OBJECTS_DIR ?? join(config.PUNCTUAL_DIR, "objects")) });
}
