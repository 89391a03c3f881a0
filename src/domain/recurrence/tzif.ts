/** Reads TZif files (RFC 9636), the compiled form of the IANA time zone database. */
import type { Transition } from "./posix-tz.ts";

/** What a TZif file says: `firstOffset` before the first transition, `footer` (a POSIX TZ string) after the last. */
export type TzifZone = {
  readonly firstOffset: number;
  readonly transitions: readonly Transition[];
  readonly footer: string;
};

type Counts = { readonly at: number; readonly types: number; readonly length: number; readonly isVersion2: boolean };

const HEADER_BYTES = 44;

/** Decodes one file. Throws where the bytes are not TZif of version 2 or later: every zoneinfo of this century is. */
export function readTzif(bytes: Uint8Array): TzifZone {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const first = readHeader(view, 0, 4);
  if (!first.isVersion2)
    throw new Error("This TZif file is of version 1, whose instants end in 2038; version 2 is needed");
  const start = HEADER_BYTES + first.length;
  const counts = readHeader(view, start, 8);
  return decode(bytes, view, start + HEADER_BYTES, counts);
}

function readHeader(view: DataView, start: number, timeBytes: number): Counts {
  if (view.byteLength < start + HEADER_BYTES || view.getUint32(start) !== 0x545a6966)
    throw new Error("Not a TZif file");
  const [isUt, isStd, leap, at, types, chars] = [20, 24, 28, 32, 36, 40].map((field) => view.getUint32(start + field));
  const length = at! * (timeBytes + 1) + types! * 6 + chars! + leap! * (timeBytes + 4) + isStd! + isUt!;
  return { at: at!, types: types!, length, isVersion2: view.getUint8(start + 4) >= 0x32 };
}

function decode(bytes: Uint8Array, view: DataView, start: number, counts: Counts): TzifZone {
  const kinds = start + counts.at * 8;
  const types = kinds + counts.at;
  const offsetOfType = (type: number) => view.getInt32(types + type * 6);
  const transitions: Transition[] = [];
  for (let k = 0; k < counts.at; k += 1) {
    transitions.push({ at: Number(view.getBigInt64(start + k * 8)), offset: offsetOfType(view.getUint8(kinds + k)) });
  }
  const tail = new TextDecoder().decode(bytes.subarray(start + counts.length));
  const footer = /^\n([^\n]*)\n/.exec(tail)?.[1];
  if (footer === undefined || footer === "") throw new Error("This TZif file has no footer, so its future is unknown");
  return { firstOffset: offsetOfType(0), transitions, footer };
}
