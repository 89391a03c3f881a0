/** Answers of a Redis, cut from a stream before anything reads them: a length in one is an announcement, and costs nothing to make. */

const LARGEST_ANSWER = 2 ** 18;
/** Of all arrays, sets and maps in one answer. */
const MOST_ELEMENTS = 1_000;
const DEEPEST = 8;
/** Every line but a text's. */
const LONGEST_LINE = 64;
const CR = 13;
const LF = 10;

const LENGTH = /^(0|[1-9]\d{0,14})$/;
const NUMBER = /^[+-]?\d+$/;
const VALUES: Readonly<Record<string, RegExp>> = {
  "+": /^/,
  "-": /^/,
  ":": NUMBER,
  "(": NUMBER,
  ",": /^[-+.\da-zA-Z]+$/,
  "#": /^[tf]$/,
  _: /^$/,
};
const TEXTS = new Set(["+", "-"]);
const NOTHING = new Set(["$-1", "*-1"]);
/** How many bytes a string of the kind has at least. */
const STRINGS: Readonly<Record<string, number>> = { $: 0, "!": 0, "=": 4 };
/** How many elements there are for each that is announced. Pushes (`>`) are for who has asked for them, and nobody has. */
const AGGREGATES: Readonly<Record<string, number>> = { "*": 1, "~": 1, "%": 2 };

/**
 * Takes what comes, and hands on each answer once it is there to its last byte, in a memory of its own: no more of one is
 * kept than it may have, however it was cut on its way.
 * @throws Error at what is no RESP, or is more than anything asked here is answered with.
 */
export function createAnswerReader(onAnswer: (answer: Buffer) => void): (bytes: Buffer) => void {
  let held = Buffer.alloc(0);
  let size = 0;
  /** Where the next line begins, and where its end is looked for. */
  let at = 0;
  let searched = 0;
  let elements = 0;
  /** Of each aggregate that is open, how many elements are still to come. */
  let open: number[] = [];

  function keep(bytes: Buffer): void {
    if (size + bytes.length > held.length) {
      const larger = Buffer.allocUnsafeSlow(2 * (size + bytes.length));
      held.copy(larger, 0, 0, size);
      held = larger;
    }
    bytes.copy(held, size);
    size += bytes.length;
  }

  /** Where the line ends; undefined: not here yet. */
  function endOfLine(): number | undefined {
    const found = held.subarray(0, size).indexOf(CR, searched);
    searched = found < 0 ? size : found;
    const isText = TEXTS.has(String.fromCharCode(held[at]!));
    if (!isText && searched - at > LONGEST_LINE) throw new Error("it says what is no RESP");
    if (found < 0 || found + 1 === size) return undefined;
    if (held[found + 1] !== LF) throw new Error("it says what is no RESP");
    return found;
  }

  /** Reads one line, and the string that it announces. Whether there was all of it. */
  function readLine(): boolean {
    const end = endOfLine();
    if (end === undefined) return false;
    const line = held.toString("latin1", at, Math.min(end, at + LONGEST_LINE + 1));
    const kind = line.charAt(0);
    const rest = line.slice(1);
    if (NOTHING.has(line) || VALUES[kind]?.test(rest) === true) {
      done(end + 2);
      return true;
    }
    if (!LENGTH.test(rest)) throw new Error("it says what is no RESP");
    const length = Number(rest);
    const least = STRINGS[kind];
    if (least !== undefined && length >= least) return readString(end + 2 + length);
    const each = AGGREGATES[kind];
    if (each === undefined) throw new Error("it says what is no RESP");
    begin(length * each, end + 2);
    return true;
  }

  function readString(end: number): boolean {
    if (end > LARGEST_ANSWER) throw tooMuch();
    if (size < end + 2) return false;
    if (held[end] !== CR || held[end + 1] !== LF) throw new Error("it says what is no RESP");
    done(end + 2);
    return true;
  }

  function begin(count: number, next: number): void {
    elements += count;
    if (elements > MOST_ELEMENTS || open.length === DEEPEST) throw tooMuch();
    at = searched = next;
    if (count === 0) done(next);
    else open.push(count);
  }

  /** A value is complete, and with it every aggregate of which it was the last. */
  function done(next: number): void {
    at = searched = next;
    while (open.length > 0) {
      const left = open.pop()! - 1;
      if (left === 0) continue;
      open.push(left);
      return;
    }
    const answer = Buffer.from(held.subarray(0, next));
    held = Buffer.from(held.subarray(next, size));
    size = held.length;
    at = searched = elements = 0;
    open = [];
    onAnswer(answer);
  }

  return (bytes) => {
    keep(bytes);
    while (at < size && readLine());
    if (size > LARGEST_ANSWER) throw tooMuch();
  };
}

const tooMuch = () => new Error("it says too much");
