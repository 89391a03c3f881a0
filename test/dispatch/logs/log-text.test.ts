import { describe, expect, it } from "vitest";
import { readableLine } from "../../../src/dispatch/logs/log-line.ts";
import { createLogText } from "../../../src/dispatch/logs/log-text.ts";
import { knowSecrets, NO_SECRETS } from "../../../src/domain/secrets/known.ts";

const PASSWORD = "correct-horse-battery";
const secrets = knowSecrets([{ path: ["password"], value: PASSWORD }]);

/** All that comes out when `text` arrives in pieces of so many bytes. */
function inPieces(text: string, bytes: number, known = secrets): string[] {
  const kept = createLogText(() => known);
  const all = Buffer.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < all.length; at += bytes) pieces.push(kept.push(all.subarray(at, at + bytes)));
  return [...pieces, kept.end()];
}

describe("raw output on its way into a log", () => {
  for (const bytes of [1, 7, 1_000_000]) {
    it(`a secret is taken out however its line was cut: pieces of ${bytes} bytes`, () => {
      const text = `login ${PASSWORD} ok\nbasic ${Buffer.from(`me:${PASSWORD}`).toString("base64")}\nlast ${PASSWORD}`;
      const kept = inPieces(text, bytes).join("");
      expect(kept).toMatch(/^login \[secret\] ok\nbasic \S*\[secret\]\S*\nlast \[secret\]$/);
    });

    it(`a line that never ends goes on, without a secret that lies across: pieces of ${bytes} bytes`, () => {
      const filler = "x".repeat(16_375);
      const pieces = inPieces(`${filler}${PASSWORD}${filler}${PASSWORD}${filler}`, bytes);
      expect(pieces.join("")).toBe(`${filler}[secret]${filler}[secret]${filler}`);
      if (bytes < 1_000) expect(pieces.at(-1)!.length).toBeLessThan(16_384);
    });
  }

  it("without secrets nothing waits for the end of its line", () => {
    const text = createLogText(() => NO_SECRETS);
    expect(text.push("half a li")).toBe("half a li");
    expect(text.push("ne\n")).toBe("ne\n");
  });

  it("what is cut within a character is put together, and what is no text is replaced", () => {
    expect(inPieces("Grüße 👍\n", 1, NO_SECRETS).join("")).toBe("Grüße 👍\n");
    const text = createLogText(() => NO_SECRETS);
    expect(text.push(Buffer.from([0x61, 0xff, 0x00, 0x62]))).toBe("a\uFFFD\uFFFDb");
    expect(text.push("👍".slice(0, 1)) + text.push("👍".slice(1))).toBe("👍");
    expect(text.push(12n as never)).toBe("12");
    expect(text.push("\uDC4D") + text.end()).toBe("\uFFFD");
  });
});

it("a line of the process's log reads as one of the attempt's: when, how bad, what, and its fields", () => {
  const line =
    '{"level":"warn","time":"2026-11-29T18:00:00.000Z","role":"worker","run":"run_1","attempt":1,"fence":"7","rows":3,"msg":"slow"}\n';
  expect(readableLine(line)).toBe('2026-11-29T18:00:00.000Z WARN slow {"rows":3}\n');
});
