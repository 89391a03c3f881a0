import { partIdFor } from "../../authority/attempts/keep-log.ts";
import type { Authority } from "../../authority/authority.ts";
import type { Fence } from "../../domain/fence.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { createLogText } from "./log-text.ts";

export type Waiting = { runId: Uuid; attempt: number; fence: Fence; part: Uuid; bytes: Uint8Array; skipped: number };

/** What one attempt says, until it is stored: bounded, and never in anybody's way. */
export type AttemptLog = {
  /** Raw output of the work. */
  capture(chunk: Uint8Array | string): void;
  /** A whole line of ours, without secrets. */
  line(text: string): void;
  /** The attempt is over: nothing more comes. */
  end(): void;
  readonly ended: boolean;
  readonly waitingBytes: number;
  /** The next piece to be stored: the same one until `done` says what came of it. */
  next(): Waiting | undefined;
  done(outcome: "kept" | "refused"): void;
};

/** Of an attempt whose words are kept nowhere. */
export const NOTHING_KEPT: AttemptLog = {
  capture: () => {},
  line: () => {},
  end: () => {},
  ended: true,
  waitingBytes: 0,
  next: () => undefined,
  done: () => {},
};

/** Longest piece: a log is dropped by pieces, so its limit should be several of them. */
const LONGEST_PIECE = 262_144;
/** Output may come byte by byte: kept as it comes, a byte would cost a hundred, and a list of a million to be shifted. */
const CHUNK_CHARS = 4_096;

export function createAttemptLog(
  authority: Authority,
  options: {
    runId: Uuid;
    attempt: number;
    fence: Fence;
    limitBytes: number;
    secrets: () => KnownSecrets;
  },
): AttemptLog {
  const { runId, attempt, fence, limitBytes } = options;
  const text = createLogText(options.secrets);
  const pieceBytes = Math.min(LONGEST_PIECE, Math.ceil(limitBytes / 4));
  // A chunk is at most a piece; four bytes are the most of a character.
  const chunkChars = Math.max(1, Math.min(CHUNK_CHARS, Math.floor(pieceBytes / 4)));
  let chunks: Uint8Array[] = [];
  /** The last chunk, while it grows. */
  let newest = "";
  let bytes = 0;
  let skipped = 0;
  let sending: Waiting | undefined;
  let state: "open" | "ended" | "refused" = "open";

  function add(more: string): void {
    if (state === "refused") return;
    for (let at = 0; at < more.length; ) {
      let end = Math.min(more.length, at + chunkChars - newest.length);
      if (end < more.length && /[\uD800-\uDBFF]/.test(more[end - 1]!)) end++;
      const text = more.slice(at, end);
      newest += text;
      bytes += Buffer.byteLength(text);
      at = end;
      if (newest.length >= chunkChars) closeNewest();
    }
    while (bytes > limitBytes && chunks.length > 0) skip(chunks.shift()!);
  }

  function closeNewest(): void {
    if (newest !== "") chunks.push(Buffer.from(newest));
    newest = "";
  }

  function skip(chunk: Uint8Array): void {
    bytes -= chunk.byteLength;
    skipped += chunk.byteLength;
    authority.metrics.attemptLogBytes.inc({ outcome: "dropped" }, chunk.byteLength);
  }

  function take(): Waiting | undefined {
    closeNewest();
    const taken: Uint8Array[] = [];
    let size = 0;
    while (chunks.length > 0 && (size === 0 || size + chunks[0]!.byteLength <= pieceBytes)) {
      size += chunks[0]!.byteLength;
      taken.push(chunks.shift()!);
    }
    if (size === 0) return undefined;
    bytes -= size;
    const piece = { runId, attempt, fence, part: partIdFor(authority, runId), bytes: Buffer.concat(taken), skipped };
    skipped = 0;
    return piece;
  }

  return {
    capture(chunk) {
      if (state === "open") add(text.push(chunk));
    },
    line(line) {
      if (state === "open") add(line);
    },
    end() {
      if (state !== "open") return;
      add(text.end());
      state = "ended";
    },
    get ended() {
      return state !== "open";
    },
    get waitingBytes() {
      return bytes + (sending?.bytes.byteLength ?? 0);
    },
    next() {
      sending ??= take();
      return sending;
    },
    done(outcome) {
      const size = sending?.bytes.byteLength ?? 0;
      sending = undefined;
      if (outcome === "kept") {
        authority.metrics.attemptLogBytes.inc({ outcome: "kept" }, size);
        return;
      }
      state = "refused";
      authority.metrics.attemptLogBytes.inc({ outcome: "dropped" }, size + bytes);
      chunks = [];
      newest = "";
      bytes = 0;
    },
  };
}
