import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import { CRUMBS } from "../../kernel/flood.ts";
import { refuseCrumbs } from "../input/pieces.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import type { OutputFacts } from "./output-store.ts";

/** Nothing came for so long: the sender is not there any more. */
const SILENCE_MS = 60_000;
const BLOCK_BYTES = 65_536;

export type Announced = { sha256?: string | undefined; size?: number | undefined };

export type Received = {
  /** The bytes as they come, no faster than they are taken. */
  bytes: AsyncIterable<Uint8Array>;
  /** What they were in all; reads what nobody has read. */
  facts(): Promise<OutputFacts>;
};

/** An upload. At its end its bytes throw what they should have been and are not, so that whoever stores them keeps nothing. */
export function receive(source: Readable, announced: Announced, deps: { limitBytes: number; clock: Clock }): Received {
  const hash = createHash("sha256");
  const facts = { sha256: "", size: 0 };
  const bytes = (async function* () {
    for await (const chunk of inBlocks(heard(source, deps.clock))) {
      facts.size += chunk.byteLength;
      if (facts.size > deps.limitBytes) throw outputTooLarge(deps.limitBytes);
      hash.update(chunk);
      yield chunk;
    }
    facts.sha256 = hash.digest("hex");
    compare(announced, facts);
  })();
  return {
    bytes,
    async facts() {
      for await (const _ of bytes);
      return facts;
    },
  };
}

/** Stores take a call for each piece that they get, however small. */
async function* inBlocks(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let block: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    block.push(piece);
    size += piece.byteLength;
    if (size < BLOCK_BYTES) continue;
    yield block.length === 1 ? piece : Buffer.concat(block, size);
    block = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(block, size);
}

/** Ends a source that falls silent. What is slow to be taken is not the sender's silence. */
async function* heard(source: Readable, clock: Clock): AsyncGenerator<Uint8Array> {
  let silence: Timer | undefined;
  const hear = refuseCrumbs(clock, CRUMBS);
  const listen = () => {
    silence = clock.after(SILENCE_MS, () => source.destroy(new Error("the upload fell silent")));
  };
  try {
    listen();
    for await (const chunk of source as AsyncIterable<Buffer>) {
      silence?.cancel();
      hear(chunk.length);
      yield chunk;
      listen();
    }
  } catch (error) {
    // What a sender does is no failure of ours.
    throw error instanceof Problem ? error : brokenOff(messageOf(error));
  } finally {
    silence?.cancel();
  }
}

export function brokenOff(why = "its sender has gone"): Problem {
  return new Problem("invalid-request", `The upload broke off before its end: ${why}`);
}

function compare(announced: Announced, found: OutputFacts): void {
  for (const field of ["size", "sha256"] as const) {
    const said = announced[field];
    if (said === undefined || said === found[field]) continue;
    const message = "is not that of the bytes that came";
    throw fieldProblem({ field, message, found: String(said), allowed: String(found[field]) });
  }
}

export function outputTooLarge(limitBytes: number): Problem {
  return new Problem("output-too-large", `An output may have at most ${limitBytes.toLocaleString("en")} bytes here`, {
    more: { limitBytes },
    headers: { connection: "close" },
  });
}
