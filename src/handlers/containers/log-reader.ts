import { createHash, type Hash } from "node:crypto";
import type { Clock } from "../../kernel/clock.ts";
import type { ContainerEngine } from "./engine.ts";

/** Hands on what a container writes, while it writes it. */
export type LogReader = {
  /** Bytes of both streams together. */
  readonly total: number;
  readonly ofStdout: number;
  /**
   * The end of what was written, as text: whole lines, since of a line that is cut nobody could tell whether what is left
   * is half a secret.
   */
  tail(): string;
  /** Aborts when the engine's log has come to an end, or has broken off: a time to look at the container. */
  readonly pause: AbortSignal;
  /** Reads what is left of the log of a container that has ended. */
  finish(): Promise<void>;
  stop(): void;
};

const AGAIN_MS = 1_000;
/** An engine's log may be behind the container's end: it is waited for as long as something comes, but not for ever. */
const SILENCE_MS = 5_000;
const LAST_WORDS_MS = 20_000;
/**
 * A followed log may end before its last words (Podman's does, on a busy machine), so it is read once more. Not one that is
 * longer: that would take its time.
 */
const MOST_READ_AGAIN = 16 * 1_048_576;
const TAIL_BYTES = 2_048;

/**
 * Begins to read. What an engine's log says is not the container's work, so no fault of it is one of the attempt's: what
 * was missed is read once more at the end. Stops by itself behind `mostBytes`.
 */
export function readLog(
  engine: Pick<ContainerEngine, "logs">,
  id: string,
  options: { clock: Clock; mostBytes: number; take(chunk: Uint8Array): void },
): LogReader {
  const { clock, mostBytes, take } = options;
  const seen = { stdout: nothing(), stderr: nothing() };
  const total = () => seen.stdout.size + seen.stderr.size;
  const stopped = new AbortController();
  const pause = new AbortController();
  let reading = Promise.resolve(true);
  let heardMs = clock.monotonic();
  let tail: Buffer = Buffer.alloc(0);

  /** Reads the log from its beginning, but for what was seen before. False: it has broken off. */
  async function read(follow: boolean, signal: AbortSignal): Promise<boolean> {
    const unseen = { stdout: newReading(seen.stdout), stderr: newReading(seen.stderr) };
    try {
      for await (const { stream, bytes } of engine.logs(id, { follow, signal })) {
        heardMs = clock.monotonic();
        const fresh = unseen[stream](bytes);
        if (fresh.length === 0) continue;
        tail = Buffer.concat([tail, fresh]).subarray(-TAIL_BYTES);
        take(fresh);
        if (total() > mostBytes) break;
      }
      return true;
    } catch {
      // An engine in trouble is seen by who looks at the container.
      return false;
    }
  }

  /** False: the reading has kept silent, or goes on and on. It has had its time. */
  async function comesToAnEnd(read: Promise<boolean>): Promise<boolean> {
    const isOver = new AbortController();
    void read.then(() => isOver.abort());
    const begunMs = clock.monotonic();
    for (let leftMs = SILENCE_MS; leftMs > 0; ) {
      await clock.sleep(leftMs, isOver.signal);
      if (isOver.signal.aborted) return true;
      const silentUntilMs = Math.max(begunMs, heardMs) + SILENCE_MS;
      leftMs = Math.min(silentUntilMs, begunMs + LAST_WORDS_MS) - clock.monotonic();
    }
    return false;
  }

  const following = (async () => {
    while (!stopped.signal.aborted && total() <= mostBytes) {
      reading = read(true, stopped.signal);
      await reading;
      pause.abort();
      await clock.sleep(AGAIN_MS, stopped.signal);
    }
  })();

  return {
    get total() {
      return total();
    },
    get ofStdout() {
      return seen.stdout.size;
    },
    tail() {
      const text = tail.toString("utf8");
      return total() > tail.length ? text.slice(text.indexOf("\n") + 1 || text.length) : text;
    },
    pause: pause.signal,
    async finish() {
      if (total() > mostBytes) return;
      if (total() > MOST_READ_AGAIN && (!(await comesToAnEnd(reading)) || (await reading))) return;
      stopped.abort();
      await following;
      const over = new AbortController();
      const again = read(false, over.signal);
      if (!(await comesToAnEnd(again))) over.abort();
      await again;
    },
    stop: () => stopped.abort(),
  };
}

/** What was seen of a stream: how much, and by its hash what. */
type Seen = { size: number; hash: Hash };

const nothing = (): Seen => ({ size: 0, hash: createHash("sha256") });
const digestOf = (hash: Hash) => hash.copy().digest("hex");

/**
 * Takes a stream from its beginning, answers what is new, and notes it as seen. Where the engine has dropped the beginning
 * of a long log, nobody knows where what was seen ends: it goes on with a whole line, and not with what may be half a secret.
 */
function newReading(seen: Seen): (bytes: Uint8Array) => Uint8Array {
  const again = createHash("sha256");
  let left = seen.size;
  let isCut = false;
  return (bytes) => {
    const known = bytes.subarray(0, left);
    const rest = bytes.subarray(known.length);
    again.update(known);
    left -= known.length;
    if (known.length > 0 && left === 0 && digestOf(again) !== digestOf(seen.hash)) {
      isCut = true;
      seen.hash = again;
    }
    seen.size += rest.length;
    seen.hash.update(rest);
    if (!isCut) return rest;
    const lineAt = rest.indexOf(0x0a) + 1;
    isCut = lineAt === 0;
    return rest.subarray(isCut ? rest.length : lineAt);
  };
}
