import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { createLookUp, isLookUpFault } from "../../../src/handlers/outbound/look-up.ts";
import type { Address } from "../../../src/kernel/addresses.ts";

/** A name server that knows one name, says of some that they are none, has trouble with others, and does not answer for the rest. */
let server: Socket;
let address: string;
let asked = 0;

beforeAll(async () => {
  server = createSocket("udp4");
  server.on("message", (query, from) => {
    asked++;
    const answer = answerTo(query);
    if (answer !== undefined) server.send(answer, from.port, from.address);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  address = `127.0.0.1:${server.address().port}`;
});
afterAll(() => void server.close());

const ADDRESSES: Record<number, number[]> = { 1: [192, 0, 2, 7], 28: [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 7] };

function answerTo(query: Buffer): Buffer | undefined {
  const end = query.indexOf(0, 12) + 1;
  const name = query.subarray(12, end).toString("latin1");
  const type = query.readUInt16BE(end);
  const question = query.subarray(12, end + 4);
  const head = (flags: number, answers: number) => {
    const bytes = Buffer.alloc(12);
    query.copy(bytes, 0, 0, 2);
    [flags, 1, answers].forEach((value, i) => void bytes.writeUInt16BE(value, 2 + 2 * i));
    return bytes;
  };
  if (name.includes("known")) {
    const data = Buffer.from(ADDRESSES[type]!);
    const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
    return Buffer.concat([head(0x8180, 1), question, record, data]);
  }
  if (name.includes("broken")) return Buffer.concat([head(0x8182, 0), question]);
  if (name.includes("closed")) return Buffer.concat([head(0x8185, 0), question]);
  if (name.includes("half")) return Buffer.concat([head(type === 1 ? 0x8183 : 0x8182, 0), question]);
  return /localhost|nowhere/.test(name) ? Buffer.concat([head(0x8183, 0), question]) : undefined;
}

it("a name's addresses are those that name servers say, of both families", async () => {
  expect(await createLookUp([address])("known.example")).toEqual([
    { address: "192.0.2.7", family: 4 },
    { address: "2001:db8::7", family: 6 },
  ]);
});

it("what they do not know, the system may: hosts files have names too", async () => {
  expect(await createLookUp([address])("localhost")).toContainEqual({ address: "127.0.0.1", family: 4 });
});

it("a silent server is given up, and the system's threads are not asked to wait for it", async () => {
  const before = asked;
  const error = await createLookUp([address], { timeout: 100, tries: 1 })("silent.example").catch(
    (thrown: Error) => thrown,
  );
  expect(error).toMatchObject({ code: "ETIMEOUT" });
  expect(isLookUpFault(error as Error)).toBe(true);
  expect(asked).toBeGreaterThan(before);
});

it.each([
  ["broken.example", "ESERVFAIL"],
  ["closed.example", "EREFUSED"],
  ["half.example", "ESERVFAIL"],
])(
  "a server's trouble with %s is not the system's: whoever owns a name could have its threads wait",
  async (name, code) => {
    const bySystem = vi.fn();
    const error = await createLookUp([address], undefined, bySystem)(name).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code });
    expect(isLookUpFault(error as Error)).toBe(true);
    expect(bySystem).not.toHaveBeenCalled();
  },
);

it("the system is asked for two names at a time, and for each once; who is one too many hears what servers said", async () => {
  const asked: { name: string; answer: (found: Address[]) => void; fail: (error: Error) => void }[] = [];
  const lookUp = createLookUp(
    [address],
    undefined,
    (name) => new Promise((answer, fail) => void asked.push({ name, answer, fail })),
  );
  const names = Array.from({ length: 53 }, (_, n) => `nowhere${n}.example`);
  const outcomes = names.map((name) => lookUp(name).catch((error: { code: string }) => error.code));
  // Which of them has found the line full is for the order of the servers' answers to say.
  expect(await Promise.race(outcomes)).toBe("ENOTFOUND");
  for (let n = 0; n < 52; n++) {
    await vi.waitFor(() => expect(asked).toHaveLength(Math.min(n + 2, 52)), { interval: 1 });
    if (n % 2 === 0) asked[n]!.answer([{ address: "192.0.2.1", family: 4 }]);
    else asked[n]!.fail(Object.assign(new Error("none"), { code: "EAI_AGAIN" }));
  }
  const said = await Promise.all(outcomes);
  expect(said.filter((one) => one === "ENOTFOUND")).toHaveLength(1);
  expect(said.filter((one) => one === "EAI_AGAIN")).toHaveLength(26);
  // And then it is free again.
  const found = [{ address: "192.0.2.9", family: 4 } as const];
  const twice = [lookUp("nowhere.example"), lookUp("nowhere.example")];
  await vi.waitFor(() => expect(asked).toHaveLength(53));
  // The other is on its way to the same question.
  await lookUp("known.example");
  asked[52]!.answer(found);
  expect(await Promise.all(twice)).toEqual([found, found]);
  expect(asked).toHaveLength(53);
});
