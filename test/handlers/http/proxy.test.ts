import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type EgressProxy, tunnel } from "../../../src/handlers/outbound/proxy.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { outboundOf } from "../../support/outbound.ts";
import { TLS, trustTestCertificate } from "../../support/tls.ts";
import { TENANT } from "../context.ts";
import { attempt, HERE, openTarget, reset, type Target } from "./scene.ts";

/** Calls that leave through the operator's proxy: one that takes CONNECT, as proxies do. */
let proxy: { port: number; securePort: number; asked: string[]; credentials: (string | undefined)[]; answer: number };
let target: Target;
let secure: Target;
const servers: { close(): void }[] = [];

function onConnect(request: IncomingMessage, socket: Socket, head: Buffer): void {
  proxy.asked.push(request.url!);
  proxy.credentials.push(request.headers["proxy-authorization"]);
  socket.on("error", () => undefined);
  if (proxy.answer !== 200) return void socket.end(`HTTP/1.1 ${proxy.answer} No\r\ncontent-length: 0\r\n\r\n`);
  const port = Number(/:(\d+)$/.exec(request.url!)![1]);
  // Whatever is asked for, it is the target that is meant.
  const onward = connect(port, HERE, () => {
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    onward.write(head);
    socket.pipe(onward).pipe(socket);
  });
  onward.on("error", () => socket.destroy());
}

beforeAll(async () => {
  trustTestCertificate();
  target = await openTarget();
  secure = await openTarget({ tls: true });
  proxy = { port: 0, securePort: 0, asked: [], credentials: [], answer: 200 };
  const [plain, overTls] = [createServer(), createSecureServer(TLS)];
  for (const server of [plain, overTls]) {
    server.on("connect", onConnect).listen(0, HERE);
    await once(server, "listening");
    servers.push(server);
  }
  proxy.port = (plain.address() as AddressInfo).port;
  proxy.securePort = (overTls.address() as AddressInfo).port;
});
afterAll(async () => {
  for (const server of servers) server.close();
  await target.close();
  await secure.close();
});
beforeEach(() => {
  reset(target);
  reset(secure);
  Object.assign(proxy, { asked: [], credentials: [], answer: 200 });
});

const NAMES = { "target.example": HERE, "inside.example": "10.0.0.1", "six.example": "2606:4700::1111" };
const through = (resolve: EgressProxy["resolve"], url = `http://user:p%40ss@${HERE}:${proxy.port}`) =>
  outboundOf({ allow: [HERE], names: NAMES, proxy: { url: new URL(url), resolve } });
const call = (url: string, outbound = through("here")) => attempt({ url }, { tools: { outbound } });

it("the proxy is asked for the address that was looked at, and TLS goes through it with the target's name", async () => {
  expect((await call(`https://target.example:${secure.port}/`)).outcome.kind).toBe("succeeded");
  expect((await call(`http://target.example:${target.port}/`)).outcome.kind).toBe("succeeded");
  expect(proxy.asked).toEqual([`${HERE}:${secure.port}`, `${HERE}:${target.port}`]);
  expect(proxy.credentials[0]).toBe(`Basic ${Buffer.from("user:p@ss").toString("base64")}`);
  expect(secure.calls[0]!.headers).toMatchObject({ host: `target.example:${secure.port}` });
  expect(secure.calls[0]!.headers["proxy-authorization"]).toBeUndefined();
  const unproven = await call(`https://inside.test:${secure.port}/`, through("proxy"));
  expect(unproven.outcome).toMatchObject({ transient: true, code: "http-tls" });
});

it("may speak TLS itself, around that of the target", async () => {
  const outbound = through("here", `https://${HERE}:${proxy.securePort}`);
  expect((await call(`https://target.example:${secure.port}/`, outbound)).outcome.kind).toBe("succeeded");
  expect([proxy.asked, proxy.credentials]).toEqual([[`${HERE}:${secure.port}`], [undefined]]);
});

it("is asked for nothing that may not be reached, wherever names are looked up", async () => {
  const blocked = { transient: false, code: "target-blocked" };
  for (const host of ["127.0.0.1", "10.0.0.1", "localhost.", "inside.example", "2130706433"]) {
    expect((await call(`http://${host}/`)).outcome, host).toMatchObject(blocked);
  }
  for (const host of ["127.0.0.1", "[fd00::1]", "localhost.", "2130706433"]) {
    expect((await call(`http://${host}/`, through("proxy"))).outcome, host).toMatchObject(blocked);
  }
  expect(proxy.asked).toEqual([]);
});

it("gets names as they are where it looks them up", async () => {
  const { outcome } = await call(`http://Unknown.Example:${target.port}/`, through("proxy"));
  expect(outcome.kind).toBe("succeeded");
  expect(proxy.asked).toEqual([`unknown.example:${target.port}`]);
});

it("carries brokers' connections as well, and an IPv6 address in brackets", async () => {
  const never = new AbortController().signal;
  const socket = await through("here").dial(TENANT, { host: "six.example", port: target.port }, never);
  expect(proxy.asked).toEqual([`[2606:4700::1111]:${target.port}`]);
  socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 200/);
  socket.destroy();
});

it("that refuses is not the target's fault; one that forbids the target is for good", async () => {
  const url = `http://target.example:${target.port}/`;
  proxy.answer = 403;
  expect((await call(url)).outcome).toMatchObject({ transient: false, code: "target-blocked" });
  proxy.answer = 407;
  expect((await call(url)).outcome).toMatchObject({
    transient: true,
    code: "http-connection",
    message: expect.stringContaining("wants other credentials"),
  });
  proxy.answer = 502;
  expect((await call(url)).outcome).toMatchObject({ transient: true, code: "http-connection" });
  const nobody = await call(url, through("here", `http://user:secret@${HERE}:1`));
  expect(nobody.outcome).toMatchObject({ transient: true, code: "http-connection" });
  expect(JSON.stringify(nobody.outcome)).not.toContain("secret");
  expect(target.connections).toBe(0);
});

it("the proxy is not asked for whom nobody waits for any more", async () => {
  const patience = { clock: systemClock, timeoutMs: 5_000, signal: AbortSignal.abort(new Error("canceled")) };
  const way = tunnel({ url: new URL(`http://${HERE}:${proxy.port}`), resolve: "here" }, HERE, target.port, patience);
  await expect(way).rejects.toThrow("canceled");
  expect(proxy.asked).toEqual([]);
});
