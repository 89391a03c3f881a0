import { createHash, randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createObjectKey } from "../../src/objects/key.ts";
import type { ListedObject, ObjectStore } from "../../src/objects/port.ts";

/**
 * What every object store must do, whatever it is made of. `makeStore` answers an empty store or one with other keys.
 * `creates`: whether a key is created once, or, among writers at the same time, in versions of which each is its own.
 */
export function describeObjectStore(
  name: string,
  makeStore: () => Promise<ObjectStore>,
  { creates }: { creates: "once" | "versions" } = { creates: "once" },
): void {
  const mediaType = "text/plain";
  let used = 0;
  const freshKey = () => createObjectKey({ runId: RUN, attempt: ++used, fence: 7n, name: "result.txt" });
  const put = async (store: ObjectStore, bytes: Uint8Array | AsyncIterable<Uint8Array>, key = freshKey()) => {
    const outcome = await store.put(key, bytes, { mediaType });
    if (outcome.kind !== "created") throw new Error(`expected a new object, found ${outcome.kind}`);
    return outcome.object;
  };

  describe(`an object store: ${name}`, () => {
    it("gives back the very bytes, with their hash, size and version", async () => {
      const store = await makeStore();
      await fc.assert(
        fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 8 }), async (chunks) => {
          const whole = Buffer.concat(chunks);
          const object = await put(store, streamOf(chunks));
          expect(object).toMatchObject({ size: whole.length, sha256: sha256(whole) });
          expect(object.version).not.toBe("");
          expect(await buffer(await store.open(object))).toEqual(whole);
          expect(await store.stat(object)).toEqual({ uri: object.uri, size: whole.length });
          expect(await store.verify(object, object)).toEqual({ kind: "intact", object });
        }),
        { numRuns: 15 },
      );
    });

    it("keeps an object larger than any buffer on the way", async () => {
      const store = await makeStore();
      const chunk = randomBytes(1 << 20);
      const object = await put(store, streamOf(Array.from({ length: 30 }, () => chunk)));
      expect(object.size).toBe(30 << 20);
      expect(await store.verify(object, object)).toMatchObject({ kind: "intact" });
    });

    it.each([
      ["no bytes", () => Buffer.alloc(0)],
      ["a stream without bytes", () => streamOf([])],
    ])("keeps an object of %s", async (_, empty) => {
      const store = await makeStore();
      const object = await put(store, empty());
      expect(object).toMatchObject({ size: 0, sha256: sha256(Buffer.alloc(0)) });
      expect(await store.verify(object, object)).toEqual({ kind: "intact", object });
      expect(await buffer(await store.open(object))).toHaveLength(0);
    });

    it("refuses a key that is taken and leaves the first content alone", async () => {
      const store = await makeStore();
      const key = freshKey();
      const first = await put(store, Buffer.from("first"), key);
      expect(await store.put(key, Buffer.from("second"), { mediaType })).toEqual({ kind: "exists", uri: first.uri });
      expect(String(await buffer(await store.open(first)))).toBe("first");
    });

    it(`lets ${creates === "once" ? "exactly one of" : ""} many writers of one key win, and keeps a winner's bytes whole`, async () => {
      const store = await makeStore();
      for (let round = 0; round < (creates === "once" ? 5 : 1); round++) {
        const key = freshKey();
        const contents = Array.from({ length: 12 }, (_, i) => Buffer.alloc(20_000, `writer ${i} `));
        const outcomes = await Promise.all(contents.map((bytes) => store.put(key, streamOf([bytes]), { mediaType })));
        const winners = outcomes.flatMap((outcome, i) => (outcome.kind === "created" ? [{ outcome, i }] : []));
        if (creates === "once") expect(winners).toHaveLength(1);
        else expect(new Set(winners.map(({ outcome }) => outcome.object.version)).size).toBe(winners.length);
        for (const { outcome, i } of winners) {
          expect(await buffer(await store.open(outcome.object))).toEqual(contents[i]);
          expect(await store.verify(outcome.object, outcome.object)).toMatchObject({ kind: "intact" });
        }
        expect(await store.put(key, contents[0]!, { mediaType })).toMatchObject({ kind: "exists" });
      }
    });

    it.each([
      ["at once", 1],
      ["after many bytes", 20],
    ])("shows nothing of an upload whose source fails %s, and the key can be used afterwards", async (_, megabytes) => {
      const store = await makeStore();
      const key = freshKey();
      async function* breaks() {
        for (let i = 0; i < megabytes; i++) yield Buffer.alloc(1 << 20);
        throw Object.assign(new Error("the worker's connection broke"), {
          code: "ECONNRESET",
          errno: -104,
          syscall: "read",
        });
      }
      await expect(store.put(key, breaks(), { mediaType })).rejects.toThrow("the worker's connection broke");
      expect(await store.stat({ uri: store.uriOf(key), version: null })).toBeUndefined();
      const object = await put(store, Buffer.from("whole"), key);
      expect(object.size).toBe(5);
    });

    it.each([
      ["before it began", 0],
      ["at once", 1],
      ["after many bytes", 20],
    ])("shows nothing of an upload that was called off %s", async (_, megabytes) => {
      const store = await makeStore();
      const key = freshKey();
      const calledOff = new AbortController();
      const reason = new Error("nobody wants it any more");
      if (megabytes === 0) calledOff.abort(reason);
      async function* goesOn() {
        for (let i = 0; i < megabytes; i++) yield Buffer.alloc(1 << 20);
        calledOff.abort(reason);
        yield Buffer.alloc(1 << 20);
      }
      const upload = store.put(key, goesOn(), { mediaType, signal: calledOff.signal });
      await expect(upload).rejects.toThrow(reason.message);
      expect(await store.stat({ uri: store.uriOf(key), version: null })).toBeUndefined();
    });

    it("lists its objects page by page, and nothing else", async () => {
      const store = await makeStore();
      const objects = await Promise.all([1, 2, 3].map(() => put(store, Buffer.from("x"))));
      const listed: ListedObject[] = [];
      for (let after: string | undefined; ; ) {
        const page = await store.list(after);
        listed.push(...page.objects);
        after = page.next;
        if (after === undefined) break;
      }
      for (const { uri } of objects) {
        const found = listed.filter((one) => one.uri === uri);
        expect(found).toHaveLength(1);
        expect(store.uriOf(createObjectKey(found[0]!.parts))).toBe(uri);
        expect(Math.abs(found[0]!.storedAt - Date.now())).toBeLessThan(60_000);
      }
    });

    it("shows nothing while an upload is under way", async () => {
      const store = await makeStore();
      const key = freshKey();
      const uri = store.uriOf(key);
      const gate = Promise.withResolvers<void>();
      async function* slow() {
        yield Buffer.from("one");
        await gate.promise;
        yield Buffer.from("two");
      }
      const upload = store.put(key, slow(), { mediaType });
      expect(await store.stat({ uri, version: null })).toBeUndefined();
      gate.resolve();
      expect(await upload).toMatchObject({ kind: "created", object: { uri, size: 6 } });
    });

    it("tells a wrong size, a wrong checksum and a missing object apart", async () => {
      const store = await makeStore();
      const object = await put(store, Buffer.from("report"));
      const wrong = sha256(Buffer.from("rumour"));
      expect(await store.verify(object, { ...object, sha256: wrong })).toEqual({
        kind: "mismatch",
        field: "sha256",
        expected: wrong,
        found: object.sha256,
      });
      expect(await store.verify(object, { ...object, size: 7 })).toMatchObject({ field: "size", found: "6" });
      await store.remove(object.uri);
      expect(await store.verify(object, object)).toEqual({ kind: "missing" });
      expect(await store.stat(object)).toBeUndefined();
      await expect(store.open(object)).rejects.toMatchObject({ code: "object-missing", actor: "operator" });
    });

    it("removes an object twice without complaint and leaves its neighbours", async () => {
      const store = await makeStore();
      const runId = RUN;
      const [a, b] = await Promise.all(
        ["a.txt", "b.txt"].map((file) =>
          put(store, Buffer.from(file), createObjectKey({ runId, attempt: 999, fence: 8n, name: file })),
        ),
      );
      await store.remove(a!.uri);
      await store.remove(a!.uri);
      expect(await store.verify(b!, b!)).toMatchObject({ kind: "intact" });
      await store.remove(b!.uri);
    });

    it("creates and removes neighbours at once without losing one", async () => {
      const store = await makeStore();
      const keys = Array.from({ length: 30 }, (_, i) =>
        createObjectKey({ runId: RUN, attempt: 5000, fence: 9n, name: `n${i}` }),
      );
      await Promise.all(
        keys.map(async (key, i) => {
          const object = await put(store, Buffer.from(key), key);
          if (i % 2 === 0) await store.remove(object.uri);
          else expect(await store.verify(object, object)).toMatchObject({ kind: "intact" });
        }),
      );
    });

    it("refuses an address of another store instead of reading something of its own", async () => {
      const store = await makeStore();
      for (const uri of ["elsewhere:a/b/c", "/etc/passwd", ""]) {
        await expect(store.open({ uri, version: null })).rejects.toMatchObject({ code: "object-elsewhere" });
        await expect(store.remove(uri)).rejects.toMatchObject({ code: "object-elsewhere" });
      }
    });
  });
}

const RUN = "0196a0c1-5c00-8123-8abc-0123456789ab";

export const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

export async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
