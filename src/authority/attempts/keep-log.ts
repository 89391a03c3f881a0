import type { Fence } from "../../domain/fence.ts";
import { bucketOf, mintId, type Uuid } from "../../kernel/ids.ts";
import { unlessAborted } from "../../kernel/unless-aborted.ts";
import type { Authority } from "../authority.ts";
import { appendLogs, type LogAppended, type StoredLogPart } from "./append-log.ts";

/** Where parts of logs are stored, and how much of a log is kept. */
export type LogStore = {
  /** Bytes kept of one attempt's log: the newest. 0: no logs are kept. */
  readonly limitBytes: number;
  /** Stores a part. The same part and bytes again: the same answer. */
  put(
    of: { runId: Uuid; attempt: number; fence: Fence; part: Uuid },
    bytes: Uint8Array,
    signal?: AbortSignal,
  ): Promise<Pick<StoredLogPart, "name" | "uri" | "version" | "sha256" | "size">>;
  remove(uri: string): Promise<void>;
};

/** Something that an attempt said: whole characters of UTF-8 text, without secrets. */
export type LogPiece = {
  runId: Uuid;
  attempt: number;
  fence: Fence;
  bytes: Uint8Array;
  /** How many bytes were lost before it. */
  skipped?: number;
  /** Its object's id, of who may have to say it again. */
  part?: Uuid;
};

export type LogKept = { kind: "kept" } | { kind: "stale-fence" } | { kind: "off" } | { kind: "failed"; error: unknown };

const SIDE_BY_SIDE = 8;
const TRIES = 4;

/** An id for a part, chosen before it is stored. */
export function partIdFor(authority: Authority, runId: Uuid): Uuid {
  return mintId(authority.clock.now(), bucketOf(runId));
}

/**
 * Stores pieces of logs and says so to the authority, at most one piece of an attempt. Never throws: each piece has an
 * answer of its own. Bytes that get no row are removed again; where even that fails, the store cleaner finds them.
 * When `signal` aborts, what is not stored by then has failed: a store that hears of no signal may go on for itself.
 */
export async function keepLogs(
  authority: Authority,
  store: LogStore,
  pieces: readonly LogPiece[],
  signal?: AbortSignal,
): Promise<readonly LogKept[]> {
  if (store.limitBytes === 0) return pieces.map(() => ({ kind: "off" }));
  const answers: LogKept[] = [];
  let waiting: { place: number; part: StoredLogPart }[] = [];
  const places = pieces.keys();
  async function putSome(): Promise<void> {
    for (const place of places) {
      const { bytes, skipped = 0, part, ...of } = pieces[place]!;
      const objectId = part ?? partIdFor(authority, of.runId);
      const put = () => store.put({ ...of, part: objectId }, bytes, signal);
      try {
        const stored = await (signal === undefined ? put() : unlessAborted(signal, put));
        waiting.push({ place, part: { ...of, objectId, skipped, ...stored } });
      } catch (error) {
        answers[place] = { kind: "failed", error };
      }
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, putSome));

  for (let tries = 1; waiting.length > 0; tries++) {
    const asked = waiting;
    const said = await say(authority, store, asked);
    for (const [i, { place }] of asked.entries()) answers[place] = answerOf(said[i]!);
    waiting = tries === TRIES ? [] : asked.filter((_, i) => said[i]!.kind === "busy");
  }
  return answers;
}

/** One piece; for who has just one. */
export async function keepLog(authority: Authority, store: LogStore, piece: LogPiece): Promise<LogKept> {
  return (await keepLogs(authority, store, [piece]))[0]!;
}

type Said = LogAppended | { kind: "failed"; error: unknown };

async function say(
  authority: Authority,
  store: LogStore,
  asked: readonly { part: StoredLogPart }[],
): Promise<readonly Said[]> {
  const parts = asked.map((one) => one.part);
  try {
    const said = await appendLogs(authority, parts, store.limitBytes);
    for (const [i, { kind }] of said.entries()) {
      if (kind === "stale-fence") void store.remove(parts[i]!.uri).catch(() => undefined);
    }
    return said;
  } catch (error) {
    // It may have been written all the same: the bytes stay, and the same part may be said again.
    return parts.map(() => ({ kind: "failed", error }));
  }
}

function answerOf(said: Said): LogKept {
  if (said.kind === "appended") return { kind: "kept" };
  return said.kind === "busy" ? { kind: "failed", error: new Error("other parts of this log came in between") } : said;
}
