import { describe, expect, it } from "vitest";
import { createAnswerReader } from "../../../src/handlers/queue/redis-answers.ts";

/** What a reader hands on of these bytes, which come in pieces of so many. */
function read(text: string, piece = text.length): string[] {
  const answers: string[] = [];
  const take = createAnswerReader((answer) => answers.push(answer.toString()));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += piece) take(bytes.subarray(at, at + piece));
  return answers;
}

const ANSWERS = [
  "+OK\r\n",
  "-ERR it is so, and more than a line of sixty-four bytes says about why it is so and not otherwise\r\n",
  ":-12\r\n",
  "(3492890328409238509324850943850943825024385\r\n",
  ",1.5e-9\r\n",
  "#t\r\n",
  "_\r\n",
  "$-1\r\n",
  "*-1\r\n",
  "$0\r\n\r\n",
  "$6\r\n*9\r\n\r\n\r\n",
  "!5\r\nERR x\r\n",
  "=8\r\ntxt:\r\n\r\n\r\n",
  "*0\r\n",
  "*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n%2\r\n+a\r\n_\r\n+b\r\n~1\r\n#f\r\n",
];

describe("answers of a Redis", () => {
  it.each([1, 2, 3, 7, 1_000])(
    "are handed on one by one and whole, in whichever pieces they come: %i bytes",
    (piece) => {
      expect(read(ANSWERS.join(""), piece)).toEqual(ANSWERS);
    },
  );

  it("are handed on up to the limits: 1000 elements, eight deep, 256 KiB", () => {
    for (const one of [
      `*1000\r\n${":1\r\n".repeat(1_000)}`,
      `${"*1\r\n".repeat(8)}:1\r\n`,
      `$262000\r\n${"x".repeat(262_000)}\r\n`,
    ]) {
      expect(read(one, 65_536)).toEqual([one]);
      expect(read(one.slice(0, -1), 65_536)).toEqual([]);
    }
  });

  it.each([
    "*1001\r\n",
    "%501\r\n",
    `*500\r\n${"*1\r\n:1\r\n".repeat(400)}*101\r\n`,
    "*1\r\n".repeat(9),
    "$262145\r\n",
    `*2\r\n$262000\r\n${"x".repeat(262_000)}\r\n$200\r\n`,
    `-${"x".repeat(262_145)}`,
  ])("beyond them are none, as soon as they are announced", (text) => {
    expect(() => read(text)).toThrow("too much");
  });

  it.each([
    "\r\n",
    "hello\r\n",
    "+a\rb\r\n",
    ":\r\n",
    ":1x\r\n",
    "#y\r\n",
    "_x\r\n",
    "$-2\r\n",
    "!-1\r\n",
    "$01\r\n",
    "$?\r\n",
    "=3\r\n",
  ])("that are no RESP are none: %j", (text) => {
    expect(() => read(text)).toThrow("no RESP");
  });

  it.each([`:${"1".repeat(64)}`, "$1\r\nab\r\n", "*1\r\n>1\r\n", "|1\r\n"])("nor are these: %j", (text) => {
    expect(() => read(text)).toThrow("no RESP");
  });
});
