/**
 * Array parameters in PostgreSQL's binary format. A batch sends a dozen arrays of a thousand items each; as text the
 * server spent more time reading them than writing their rows (measured: 1.2 µs an item as text, 0.35 µs as binary).
 * A statement says the types itself (`$1::uuid[]`), so callers pass plain arrays of domain values.
 */

export type ArrayType = "uuid" | "int" | "smallint" | "bigint" | "boolean" | "timestamptz" | "text" | "jsonb";

const OIDS: Readonly<Record<ArrayType, number>> = {
  uuid: 2950,
  int: 23,
  smallint: 21,
  bigint: 20,
  boolean: 16,
  timestamptz: 1184,
  text: 25,
  jsonb: 3802,
};
/** Bytes of an item; undefined where they vary. */
const WIDTHS: Readonly<Partial<Record<ArrayType, number>>> = {
  uuid: 16,
  int: 4,
  smallint: 2,
  bigint: 8,
  boolean: 1,
  timestamptz: 8,
};

const DECLARATION = /\$(\d+)::(uuid|int|smallint|bigint|boolean|timestamptz|text|jsonb)\[\]/g;

/** The array types a statement declares, by parameter position (from 0). */
export function declaredArrays(text: string): ReadonlyMap<number, ArrayType> {
  return new Map([...text.matchAll(DECLARATION)].map((match) => [Number(match[1]) - 1, match[2] as ArrayType]));
}

/** An item that is not of its array's type: like a data error of the server, it is the fault of one item of a batch. */
export class BadItem extends TypeError {}

/** Throws BadItem for an item that is not of the type. */
export function encodeArray(type: ArrayType, items: readonly unknown[]): Buffer {
  const width = WIDTHS[type];
  const texts = width === undefined ? items.map((item) => textOf(type, item)) : undefined;
  const bytes = texts === undefined ? items.length * width! : texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
  const out = Buffer.allocUnsafe(20 + items.length * 4 + bytes);
  if (items.length === 0) {
    // An empty array has no dimension.
    out.writeInt32BE(0, 0);
    out.writeInt32BE(0, 4);
    out.writeInt32BE(OIDS[type], 8);
    return out.subarray(0, 12);
  }
  out.writeInt32BE(1, 0);
  out.writeInt32BE(1, 4); // there may be nulls
  out.writeInt32BE(OIDS[type], 8);
  out.writeInt32BE(items.length, 12);
  out.writeInt32BE(1, 16);
  let at = 20;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item === null || item === undefined) at = out.writeInt32BE(-1, at);
    else if (texts !== undefined) {
      const text = texts[i]!;
      at = out.writeInt32BE(text.length, at);
      at += text.copy(out, at);
    } else {
      out.writeInt32BE(width!, at);
      writeFixed(out, at + 4, type, item);
      at += 4 + width!;
    }
  }
  return out.subarray(0, at);
}

function textOf(type: ArrayType, item: unknown): Buffer | undefined {
  if (item === null || item === undefined) return undefined;
  // jsonb begins with the version of its format.
  return type === "jsonb" ? Buffer.from(`\u0001${JSON.stringify(item)}`) : Buffer.from(String(item));
}

function writeFixed(out: Buffer, at: number, type: ArrayType, item: unknown): void {
  if (type === "uuid") writeUuid(out, at, item as string);
  else if (type === "timestamptz") writeInstant(out, at, item as number);
  else if (type === "int") out.writeInt32BE(item as number, at);
  else if (type === "smallint") out.writeInt16BE(item as number, at);
  else if (type === "bigint") out.writeBigInt64BE(BigInt(item as number | bigint), at);
  else out[at] = item === true ? 1 : 0;
}

const NIBBLES = new Uint8Array(128).fill(255);
for (let n = 0; n < 16; n++) {
  NIBBLES["0123456789abcdef".charCodeAt(n)] = n;
  NIBBLES["0123456789ABCDEF".charCodeAt(n)] = n;
}
const HYPHEN = 45;

function writeUuid(out: Buffer, start: number, text: string): void {
  let at = start;
  for (let i = 0; i < text.length; ) {
    if (text.charCodeAt(i) === HYPHEN) {
      i++;
      continue;
    }
    const high = NIBBLES[text.charCodeAt(i)]!;
    const low = NIBBLES[text.charCodeAt(i + 1)]!;
    if (!(high < 16 && low < 16)) break;
    out[at++] = (high << 4) | low;
    i += 2;
  }
  if (at !== start + 16) throw new BadItem(`not a uuid: ${JSON.stringify(text)}`);
}

const EPOCH_2000_MS = 946_684_800_000;

/** Epoch ms with a fraction → microseconds since 2000, as PostgreSQL keeps them. */
function writeInstant(out: Buffer, at: number, instant: number): void {
  const micros = Math.round((instant - EPOCH_2000_MS) * 1000);
  if (!Number.isSafeInteger(micros)) {
    // Beyond the year 2285 a double holds no microseconds, but its milliseconds still count.
    if (!Number.isFinite(instant)) throw new BadItem(`not an instant: ${instant}`);
    out.writeBigInt64BE(BigInt(Math.round(instant) - EPOCH_2000_MS) * 1000n, at);
    return;
  }
  const high = Math.floor(micros / 2 ** 32);
  out.writeInt32BE(high, at);
  out.writeUInt32BE(micros - high * 2 ** 32, at + 4);
}
