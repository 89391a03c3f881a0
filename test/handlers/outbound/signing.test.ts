import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { signedHeaders } from "../../../src/handlers/outbound/signing.ts";

const secretOf = (key: Uint8Array) => `whsec_${Buffer.from(key).toString("base64")}`;
const [old, fresh, stranger] = [randomBytes(24), randomBytes(32), randomBytes(32)] as const;
const body = JSON.stringify({ name: "Tagesbericht für Köln 🚢", n: 1 });
const now = () => Date.now();

describe("a signed call", () => {
  it("is verified by the reference library, with either key while both sign", () => {
    const headers = signedHeaders([fresh, old], { id: "run_1", atMs: now(), body });
    for (const key of [fresh, old]) {
      expect(new Webhook(secretOf(key)).verify(body, headers)).toEqual(JSON.parse(body));
    }
    expect(headers["webhook-signature"]!.split(" ")).toHaveLength(2);
    expect(() => new Webhook(secretOf(stranger)).verify(body, headers)).toThrow("No matching signature");
  });

  it("is refused when the body, the id or the instant is another one", () => {
    const headers = signedHeaders([old], { id: "run_1", atMs: now(), body });
    const receiver = new Webhook(secretOf(old));
    expect(() => receiver.verify(`${body} `, headers)).toThrow("No matching signature");
    expect(() => receiver.verify(body, { ...headers, "webhook-id": "run_2" })).toThrow("No matching signature");
    const later = String(Number(headers["webhook-timestamp"]) + 1);
    expect(() => receiver.verify(body, { ...headers, "webhook-timestamp": later })).toThrow("No matching signature");
    const stale = signedHeaders([old], { id: "run_1", atMs: now() - 600_000, body });
    expect(() => receiver.verify(body, stale)).toThrow("too old");
  });

  it("says the same of text and of its bytes, and is signed over bytes that are no text", () => {
    const of = (what: string | Uint8Array) => signedHeaders([old], { id: "run_1", atMs: 1_000_000, body: what });
    expect(of(Buffer.from(body))).toEqual(of(body));
    expect(of(new Uint8Array([0xff, 0xfe]))).not.toEqual(of(new Uint8Array([0xff, 0xfd])));
  });

  it("has no such headers where the tenant has no key", () => {
    expect(signedHeaders([], { id: "run_1", atMs: now(), body })).toEqual({});
  });
});
