import type { KnownSecrets } from "../../domain/secrets/known.ts";

/** Longest a line grows before some of it goes on without its end. */
const LONGEST_LINE = 16_384;

/** Raw output, piece by piece, on its way to text that may be kept. Each answers what may be kept so far. */
export type LogText = {
  push(chunk: Uint8Array | string): string;
  /** Nothing more comes. */
  end(): string;
};

/**
 * Whole lines without secrets, wherever their output was cut into chunks; of a line that does not end, all that no secret
 * can go on from. Bytes that are no UTF-8, lone surrogates and NUL become U+FFFD. `secrets` is asked anew each time: it
 * may have been opened since.
 */
export function createLogText(secrets: () => KnownSecrets): LogText {
  const decoder = new TextDecoder();
  let open = "";

  function settle(): string {
    const known = secrets();
    // Nothing to take out, nothing to wait for.
    if (known.count === 0) return takeOpen(lastWhole(open));
    const line = known.scrub(takeOpen(open.lastIndexOf("\n") + 1));
    if (open.length <= LONGEST_LINE) return line;
    const { settled, rest } = known.scrubSettled(open);
    open = rest;
    return line + settled;
  }

  function takeOpen(length: number): string {
    const taken = open.slice(0, length);
    open = open.slice(length);
    return taken;
  }

  return {
    push(chunk) {
      // The types are promises of the job only, and what it captures never fails it.
      const more = chunk instanceof Uint8Array ? decoder.decode(chunk, { stream: true }) : String(chunk);
      open += more;
      // Output may come byte by byte: a line is looked at when it is whole, or long.
      const waits = secrets().count > 0 && open.length <= LONGEST_LINE && !more.includes("\n");
      return waits ? "" : keepable(settle());
    },
    end() {
      open += decoder.decode();
      return keepable(secrets().scrub(takeOpen(open.length)));
    },
  };
}

/** Up to where no character is cut. */
function lastWhole(text: string): number {
  return /[\uD800-\uDBFF]$/.test(text) ? text.length - 1 : text.length;
}

const keepable = (text: string) => text.toWellFormed().replaceAll("\0", "\uFFFD");
