import type { Readable } from "node:stream";
import { extract } from "tar-stream";
import { messageOf } from "../../../kernel/errors.ts";
import { permanentFailure } from "../../outcome.ts";
import { engineUnavailable, type LogChunk } from "../engine.ts";
import { resultTooLarge } from "../follow.ts";

const HEADER = 8;

/** Docker's frames: one byte of stream, three of nothing, four of length, then that many. */
export async function* demultiplex(stream: Readable): AsyncGenerator<LogChunk> {
  let left: Buffer = Buffer.alloc(0);
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      left = left.length === 0 ? part : Buffer.concat([left, part]);
      let at = 0;
      while (left.length - at >= HEADER) {
        const end = at + HEADER + left.readUInt32BE(at + 4);
        if (left.length < end) break;
        yield { stream: left[at] === 2 ? "stderr" : "stdout", bytes: left.subarray(at + HEADER, end) };
        at = end;
      }
      left = left.subarray(at);
    }
  } catch (error) {
    throw engineUnavailable(messageOf(error), error);
  } finally {
    stream.destroy();
  }
  if (left.length > 0) throw engineUnavailable("its answer was cut off");
}

/** The one file in an archive of the engine's. @throws JobFailure `result-missing`, `result-too-large`. */
export async function* onlyFile(stream: Readable, path: string, mostBytes: number): AsyncGenerator<Uint8Array> {
  const entries = extract();
  stream.on("error", (error) => entries.destroy(error));
  stream.pipe(entries);
  try {
    for await (const entry of entries) {
      const { type, size = 0 } = entry.header;
      if (type !== "file" && type !== "contiguous-file")
        throw permanentFailure("result-missing", `${path} is a ${type}, no file`);
      if (size > mostBytes) throw resultTooLarge(mostBytes);
      yield* entry as AsyncIterable<Uint8Array>;
      return;
    }
  } finally {
    stream.destroy();
    entries.destroy();
  }
  throw permanentFailure("result-missing", `there is no ${path}`);
}
