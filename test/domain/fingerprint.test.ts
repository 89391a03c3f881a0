import { describe, expect, it } from "vitest";
import { fingerprintOf } from "../../src/domain/fingerprint.ts";

describe("fingerprints", () => {
  it("are the same for one kind of failure, whatever varies in its text", () => {
    const one = fingerprintOf("sql", 'row 4711 of "ann" (0192f0aa-1111-4222-8333-444455556666) is gone');
    expect(fingerprintOf("sql", "row 12 of 'bob' (0192f0ab-9999-4222-8333-444455556667) is gone")).toBe(one);
    expect(fingerprintOf("smtp", 'row 4711 of "ann" (0192f0aa-1111-4222-8333-444455556666) is gone')).not.toBe(one);
    expect(fingerprintOf("sql", "a table is gone")).not.toBe(one);
    expect(one).toMatch(/^[0-9a-f]{16}$/);
    expect(fingerprintOf("x", `same${"y".repeat(600)}1`)).toBe(fingerprintOf("x", `same${"y".repeat(600)}`));
  });
});
