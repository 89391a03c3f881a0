import fc from "fast-check";
import { expect, it } from "vitest";
import { createObjectKey, parseObjectKey } from "../../src/objects/key.ts";

const of = { runId: "0196a0c1-5c00-8123-8abc-0123456789ab", attempt: 2, fence: 1_099_511_627_783n };

it("names an object after its run, attempt and fence, so two attempts never mean the same one", () => {
  const key = createObjectKey({ ...of, name: "report.html" });
  expect(key).toBe("0196a0c1-5c00-8123-8abc-0123456789ab/a2-f1099511627783/report.html");
  expect(createObjectKey({ ...of, fence: of.fence + 1n, name: "report.html" })).not.toBe(key);
});

it.each([
  "..",
  ".",
  "",
  "../x",
  "a/b",
  "/etc",
  ".hidden",
  "a\\b",
  "a\0b",
  "<script>",
  "naïve",
  "📈.html",
  "x".repeat(101),
  "C:",
  "a b",
])("refuses %j as a name and says what is allowed", (name) => {
  expect(() => createObjectKey({ ...of, name })).toThrow(
    expect.objectContaining({
      code: "object-name-invalid",
      actor: "caller",
      details: expect.objectContaining({ field: "name", allowed: expect.stringContaining("letters, digits") }),
    }),
  );
});

it("never lets a text become a path outside three plain segments", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(fc.constantFrom("..", ".", "a", "", "\0", "~")).map((p) => p.join("/")),
      ),
      (text) => {
        try {
          expect(parseObjectKey(text).split("/")).toHaveLength(3);
          expect(text).toMatch(/^[\w.-]+\/[\w.-]+\/[\w.-]+$/);
          expect(text).not.toMatch(/(^|\/)\./);
        } catch (error) {
          if ((error as { code?: string }).code !== "object-name-invalid") throw error;
        }
      },
    ),
    { numRuns: 500 },
  );
});
