import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const PROGRAMS = ["podman", "runc", "busybox"];

export const pathOf = (program: string): string | undefined =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));

/** Whether containers can be run here: Podman, as root, with runc, and a static busybox to make an image of. */
export const hasPodman = (): boolean =>
  process.getuid?.() === 0 && PROGRAMS.every((program) => pathOf(program) !== undefined);
