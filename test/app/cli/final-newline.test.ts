import { expect, test } from "vitest";
import { withFinalNewline } from "../../../src/app/cli/runs/run-result.ts";

async function ended(...chunks: string[]): Promise<string> {
  async function* bytes() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  let text = "";
  for await (const chunk of withFinalNewline(bytes())) text += Buffer.from(chunk).toString();
  return text;
}

test("a result on a terminal ends its last line, once", async () => {
  expect(await ended("a", "b")).toBe("ab\n");
  expect(await ended("a\n", "")).toBe("a\n");
  expect(await ended()).toBe("");
});
