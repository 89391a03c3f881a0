import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLog } from "../../src/kernel/log.ts";
import { createUploadCleaner } from "../../src/loops/upload-cleaner.ts";
import { createFilesystemStore } from "../../src/objects/filesystem.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

it("uploads that broke off more than a day ago are cleared, younger ones may still be at work", async () => {
  const root = makeTemporaryFolder("punctual-uploads-");
  const staging = join(root, ".staging");
  const nowAt = Date.UTC(2026, 10, 29);
  mkdirSync(staging);
  for (const [name, agoHours] of [
    ["broke-off", 25],
    ["at-work", 23],
  ] as const) {
    writeFileSync(join(staging, name), "half a rep");
    const at = new Date(nowAt - agoHours * 3_600_000);
    utimesSync(join(staging, name), at, at);
  }
  const objects = createFilesystemStore({ root });
  const cleaner = createUploadCleaner({ objects, clock: { now: () => nowAt }, log: silentLog });
  expect(await cleaner.pass(new AbortController().signal)).toEqual({ did: 1, more: false });
  expect(readdirSync(staging)).toEqual(["at-work"]);
  rmSync(root, { recursive: true });
});
