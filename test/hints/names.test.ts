import { describe, expect, it } from "vitest";
import { createNames, hintJobId, parseHintJobId, queueName } from "../../src/hints/names.ts";

const tenant = "0199f0a0-7a3b-8c1d-9e2f-000000000001";

describe("names in Redis", () => {
  it("a queue's name is its ids in a hash tag, without a colon", () => {
    expect(queueName(tenant, "short")).toBe(`{${tenant}.short}`);
  });

  it("anything but ids is refused, naming what was found", () => {
    expect(() => queueName("acme", "short")).toThrow(/"acme" must be a lower-case uuid/);
    expect(() => queueName(tenant, "a:b")).toThrow(/class "a:b"/);
    expect(() => createNames("a:b")).toThrow(/prefix "a:b"/);
  });

  it("a hint's id says which publication of which row it is, and is never all digits", () => {
    const identity = { shard: 2, epoch: 3, rowId: 9_007_199_254_740_993n, publishNo: 4 };
    expect(hintJobId(identity)).toBe("s2e3o9007199254740993p4");
    expect(parseHintJobId(hintJobId(identity))).toEqual(identity);
    expect(parseHintJobId("17")).toBeUndefined();
  });
});
