import { expect, it } from "vitest";
import { changedFields } from "../../../src/domain/preview/field-diff.ts";

it("a change is told by the path of the field, with what it was and what it is", () => {
  const before = { rule: { kind: "cron", expression: "0 9 * * *" }, retry: { maxAttempts: 3 }, endAt: "x", list: [1] };
  const after = { rule: { kind: "cron", expression: "0 8 * * *" }, retry: { maxAttempts: 3 }, list: [1, 2], new: null };
  expect(changedFields(before, after)).toEqual({
    changes: [
      { field: "rule.expression", from: "0 9 * * *", to: "0 8 * * *" },
      { field: "endAt", from: "x" },
      { field: "list", from: [1], to: [1, 2] },
      { field: "new", to: null },
    ],
    hasMore: false,
  });
});

it("the order of fields is no change, and strange names are fields like others", () => {
  expect(changedFields({ a: { b: 1, c: [{ d: 1, e: 2 }] } }, { a: { c: [{ e: 2, d: 1 }], b: 1 } }).changes).toEqual([]);
  const strange = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}') as object;
  expect(changedFields({}, strange).changes).toEqual([
    { field: "__proto__", to: { x: 1 } },
    { field: "constructor", to: 2 },
  ]);
});

it("a payload of very many fields is told in part", () => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, k) => [`f${k}`, k]));
  const { changes, hasMore } = changedFields({ payload: {} }, { payload: many });
  expect([changes.length, hasMore]).toEqual([200, true]);
});
