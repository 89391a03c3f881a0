import { createWriteStream, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { download } from "../../../client/download.ts";
import type { Act } from "../act.ts";
import { printFields, printJson, printLine } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showBytes, showUtc } from "../words.ts";

type ResultOptions = ClientOptions & { output?: string };

export function resultCommand(group: Command, act: Act): void {
  withClientOptions(group.command("result <run>").description("give a link to a run's result, or download it"))
    .option("-o, --output <file>", "download it into this file, checked; - writes it to standard output")
    .action(
      act(async (config, { output, ...options }: ResultOptions, id: string) => {
        const link = await clientFor(options, config).runs.result(id);
        if (output === "-") {
          const bytes = process.stdout.isTTY ? withFinalNewline(download(link)) : download(link);
          return pipeline(bytes, process.stdout, { end: false });
        }
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
  } catch (error) {
    throw cannotWrite(path, error) ?? error;
  } finally {
    rmSync(partial, { force: true });
  }
}

function cannotWrite(path: string, error: unknown): UsageError | undefined {
  const directory = dirname(path);
  switch ((error as { code?: string }).code) {
    case "ENOENT":
      return new UsageError(`--output: the directory ${directory} does not exist`);
    case "ENOTDIR":
      return new UsageError(`--output: ${directory} is no directory`);
    case "EISDIR":
      return new UsageError(`--output: ${path} is a directory; allowed: a file`);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new UsageError(`--output: there is no permission to write into ${directory}`);
    default:
      return undefined;
  }
}

/** For a terminal, where the prompt would else follow the last line. */
export async function* withFinalNewline(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let last: number | undefined;
  for await (const chunk of bytes) {
    last = chunk.at(-1) ?? last;
    yield chunk;
  }
  if (last !== undefined && last !== 0x0a) yield Buffer.from("\n");
}
