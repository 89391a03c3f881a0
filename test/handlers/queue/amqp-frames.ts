/** What a broker says, byte by byte. */

export function frame(channel: number, type: number, ...parts: (number[] | Buffer)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.alloc(7);
  head.writeUInt8(type, 0);
  head.writeUInt16BE(channel, 1);
  head.writeUInt32BE(content.length, 3);
  return Buffer.concat([head, content, Buffer.from([0xce])]);
}
export const uint = (value: number | bigint, bytes: number) =>
  Buffer.from(
    BigInt(value)
      .toString(16)
      .padStart(bytes * 2, "0"),
    "hex",
  );
export const shortText = (text: string) => Buffer.concat([uint(text.length, 1), Buffer.from(text)]);
const longText = (text: string) => Buffer.concat([uint(text.length, 4), Buffer.from(text)]);
export const method = (channel: number, class_: number, id: number, ...parts: (number[] | Buffer)[]) =>
  frame(channel, 1, uint(class_, 2), uint(id, 2), ...parts);

/** A message comes back with these headers. */
export const returned = (table: Buffer) =>
  Buffer.concat([
    method(0, 60, 50, uint(312, 2), shortText("NO_ROUTE"), shortText(""), shortText("")),
    frame(0, 2, uint(60, 2), uint(0, 2), uint(0, 8), uint(0x2000, 2), uint(table.length, 4), table),
  ]);
export const array = (length: number) => Buffer.concat([Buffer.from("A"), uint(length, 4)]);

export const START = method(0, 10, 10, [0, 9], uint(0, 4), longText("PLAIN"), longText("en_US"));
export const tune = (frameMax: number) => method(0, 10, 30, uint(2047, 2), uint(frameMax, 4), uint(0, 2));
export const OPEN_OK = method(0, 10, 41, shortText(""));
export const CHANNEL_OPEN_OK = method(1, 20, 11, longText(""));
export const SELECT_OK = method(1, 85, 11);
export const close = (code: number, text: Buffer) => method(0, 10, 50, uint(code, 2), text, uint(0, 2), uint(0, 2));
