import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createEventSender } from "../../../src/dispatch/effects/event-sender.ts";
import { createEventPoster } from "../../../src/handlers/effects/event-webhook.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { running } from "../../authority/scenes.ts";
import { deliveries, listening } from "../../authority/webhooks/scenes.ts";
import { outboundOf } from "../../support/outbound.ts";
import { until } from "../../support/system.ts";
import { createWorld, type World } from "../../support/world.ts";

const EVENTS = 700;
const CONCURRENCY = 16;
/** A quarter. */
const OF_ONE_TENANT = 4;

/** A server that counts; while it is silent, who calls waits. */
async function listener(isSilent = false) {
  const held = new Set<ServerResponse>();
  const seen = { url: "", calls: 0, ids: new Set<string>(), mostHeld: 0, connections: 0, mostConnections: 0 };
  const server = createServer((request, response) => {
    request.resume();
    seen.calls++;
    seen.ids.add(String(request.headers["webhook-id"]));
    if (!isSilent) return void response.writeHead(204).end();
    held.add(response);
    response.once("close", () => held.delete(response));
    seen.mostHeld = Math.max(seen.mostHeld, held.size);
  });
  server.on("connection", (socket) => {
    seen.mostConnections = Math.max(seen.mostConnections, ++seen.connections);
    socket.once("close", () => seen.connections--);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  seen.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    seen,
    held,
    /** No answer, and none to come. */
    breakOff() {
      const all = [...held];
      held.clear();
      seen.mostHeld = 0;
      for (const response of all) response.destroy();
    },
    speakAgain() {
      isSilent = false;
      for (const response of held) response.writeHead(204).end();
      held.clear();
    },
  };
}

/** As if so many more runs had ended; events of all endpoints take turns. */
async function tellMany(world: World, tenantId: Uuid, urls: string[]): Promise<void> {
  for (const url of urls) await listening(world, ["run.succeeded"], { url, tenantId });
  const { grant } = await running(world, { tenantId });
  await world.complete(grant);
  await world.admin.query(
    `insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from)
     select d.endpoint_id, d.tenant_id, d.type, r.id, d.n, d.facts || jsonb_build_object('id', r.id), r.at, r.at, r.at
       from (select gen_random_uuid() as id, clock_timestamp() - i * interval '1 ms' as at
               from generate_series(1, $2::int - 1) i) r
      cross join webhook_delivery d where d.tenant_id = $1`,
    [tenantId, EVENTS],
  );
}

it("of thousands of events those for an endpoint that keeps silent hold up nobody else's, nor, once it has failed, those of its tenant's other endpoint", async () => {
  const world = await createWorld();
  onTestFinished(async () => {
    await world.check();
    await world.close();
  });
  const [silent, well, other] = [await listener(true), await listener(), await listener()];
  await tellMany(world, world.tenantId, [silent.seen.url, well.seen.url]);
  await tellMany(world, await world.newTenant("other"), [other.seen.url]);
  const outbound = outboundOf();
  const sender = createEventSender({
    authority: world.authority,
    poster: createEventPoster({
      outbound,
      keys: { keysOf: async () => [] },
      concurrency: CONCURRENCY,
      userAgent: "Punctual/test",
      clock: systemClock,
    }),
    graceMs: 10_000,
  });
  onTestFinished(async () => {
    silent.speakAgain();
    await sender.stop();
    await outbound.close();
  });
  const counts = () =>
    [silent, well, other].map(({ seen, held }) => ({ ...seen, ids: seen.ids.size, held: held.size }));
  const come = (what: string, check: () => boolean) => until(what, check, 120_000, counts);

  await sender.start();
  await come("the silent one has taken its tenant's room", () => silent.held.size === OF_ONE_TENANT);
  await come("the other tenant has heard of all", () => other.seen.ids.size === EVENTS);
  silent.breakOff();
  await come("so has the tenant's other endpoint", () => well.seen.ids.size === EVENTS);
  expect(silent.seen.mostHeld).toBeLessThanOrEqual(1);
  silent.speakAgain();
  await come("so has the one that was silent, now that it speaks", () => silent.seen.ids.size === EVENTS);
  const isDelivered = async () => (await deliveries(world)).every(({ state }) => state === "delivered");
  await until("all of it is written down", isDelivered, 120_000, counts);

  for (const { seen } of [well, other]) expect(seen.calls).toBe(EVENTS);
  // One that ends may still be there beside the one that follows it.
  for (const { seen } of [silent, well, other]) expect(seen.mostConnections).toBeLessThanOrEqual(2 * OF_ONE_TENANT);
}, 600_000);
