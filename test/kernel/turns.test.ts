import { setImmediate as nextTick } from "node:timers/promises";
import { expect, it } from "vitest";
import { createTurns, type Turns, type TurnTaker } from "../../src/kernel/turns.ts";

/** Calls whose work ends when it is said to, and what they began, in order. */
function scene(turns: Turns) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const call = (of: string, { comesFirst = false, gone = new AbortController().signal }: Partial<TurnTaker> = {}) => {
    const turn = turns.take({ of, comesFirst, gone, refuse: (waiting) => new Error(`${waiting} wait`) });
    return (name: string) =>
      turn(() => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      });
  };
  return {
    begun,
    call,
    async end(name: string) {
      ends.get(name)!();
      await nextTick();
    },
  };
}

it("each has so many turns, whoever else waits; what is beyond waits in the order it came", async () => {
  const { begun, call, end } = scene(createTurns(2));
  for (const name of ["a1", "a2", "a3", "a4"]) void call("a")(name);
  void call("b")("b1");
  expect(begun).toEqual(["a1", "a2", "b1"]);
  await end("a2");
  expect(begun.slice(3)).toEqual(["a3"]);
  await end("a1");
  expect(begun.slice(4)).toEqual(["a4"]);
});

it("whoever comes first waits before the others of its line, and a call that has begun is let to its end", async () => {
  const { begun, call, end } = scene(createTurns(1));
  const first = call("a");
  void first("read");
  void call("a")("next");
  void call("a", { comesFirst: true })("heartbeat");
  await end("read");
  expect(begun).toEqual(["read", "heartbeat"]);
  void first("write");
  await end("heartbeat");
  await end("write");
  expect(begun).toEqual(["read", "heartbeat", "write", "next"]);
});

it("work that fails gives its turn back", async () => {
  const gone = new AbortController().signal;
  const refuse = () => new Error("no room");
  const turn = createTurns(1).take({ of: "a", comesFirst: false, gone, refuse });
  await expect(turn(() => Promise.reject(new Error("no answer")))).rejects.toThrow("no answer");
  expect(await turn(async () => "answered")).toBe("answered");
});

it("whose caller has gone leaves the line; what it has begun goes on", async () => {
  const { begun, call, end } = scene(createTurns(1));
  const hangUp = new AbortController();
  const stays = call("a", { gone: hangUp.signal });
  const read = stays("read");
  const waits = call("a", { gone: hangUp.signal })("never");
  void call("a")("next");
  hangUp.abort(new Error("gone"));
  await expect(waits).rejects.toThrow("gone");
  await expect(call("a", { gone: hangUp.signal })("late")).rejects.toThrow("gone");
  const write = stays("write");
  await end("read");
  await end("write");
  await Promise.all([read, write]);
  expect(begun).toEqual(["read", "write", "next"]);
});

it("a line has an end, and who comes first has room beside it", async () => {
  const { begun, call } = scene(createTurns(1));
  const begins = call("a");
  void begins("one");
  for (let k = 0; k < 1_000; k++) void call("a")(`${k}`);
  await expect(call("a")("too many")).rejects.toThrow("1000 wait");
  for (let k = 0; k < 1_000; k++) void call("a", { comesFirst: true })(`${k}`);
  await expect(call("a", { comesFirst: true })("too many")).rejects.toThrow("1000 wait");
  void call("b")("other");
  expect(begun).toEqual(["one", "other"]);
});
