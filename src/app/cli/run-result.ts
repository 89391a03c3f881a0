import { createWriteStream, renameSync, rmSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { download } from "../../client/download.ts";
import type { Act } from "./act.ts";
import { printFields, printJson, printLine } from "./print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "./target.ts";
import { showBytes, showUtc } from "./words.ts";

type ResultOptions = ClientOptions & { output?: string };

export function resultCommand(group: Command, act: Act): void {
  withClientOptions(group.command("result <run>").description("give a link to a run's result, or download it"))
    .option("-o, --output <file>", "download it into this file, checked; - writes it to standard output")
    .action(
      act(async (config, { output, ...options }: ResultOptions, id: string) => {
        const link = await clientFor(options, config).runs.result(id);
        if (output === "-") return pipeline(download(link), process.stdout, { end: false });
        if (output !== undefined) await save(output, download(link));
        if (options.json) return printJson(output === undefined ? link : { ...link, savedAs: output });
        if (output !== undefined) return printLine(`Saved ${showBytes(link.size)} as ${output}`);
        printFields({
          link: link.url,
          "valid until": showUtc(link.expiresAt),
          size: showBytes(link.size),
          type: link.mediaType,
          sha256: link.sha256,
        });
      }),
    );
}

/** A file that appears under its name is whole. */
async function save(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const partial = `${path}.partial-${process.pid}`;
  try {
    await pipeline(bytes, createWriteStream(partial));
    renameSync(partial, path);
  } finally {
    rmSync(partial, { force: true });
  }
}
