import { expect, it } from "vitest";
import { trustedRows } from "../../../src/api/identity/trusted-rows.ts";
import { systemClock } from "../../../src/kernel/clock.ts";

it("a burst of calls with one key reads its row once; a row that could not be read is read again", async () => {
  const asked: string[] = [];
  let isThere = false;
  const rowOf = trustedRows(systemClock, async (key) => {
    asked.push(key);
    if (!isThere) throw new Error("no answer");
    return { key };
  });
  const both = await Promise.allSettled([rowOf("a"), rowOf("a")]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  isThere = true;
  expect(await Promise.all([rowOf("a"), rowOf("a"), rowOf("b")])).toEqual([{ key: "a" }, { key: "a" }, { key: "b" }]);
  expect(asked).toEqual(["a", "a", "b"]);
});
