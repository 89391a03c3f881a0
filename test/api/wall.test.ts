import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { contextOf } from "../../src/api/calls/context-of.ts";
import { ROUTES } from "../../src/api/table.ts";
import { wallCheck } from "../../src/app/doctor/security/wall.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { sql } from "../../src/store/database.ts";
import { raiseWall } from "../../src/store/raise-wall.ts";
import { createReaders } from "../../src/store/reads/wall/readers.ts";
import { startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let tenantId: string;
beforeAll(async () => {
  server = await startTestServer();
  tenantId = await server.tenant("acme");
  await server.tenant("others");
});
afterAll(() => server?.close());

const SEES_EVERY_TENANT = {
  "GET /v1/status": "how far behind the machinery is, whoever waits for it",
  "GET /v1/tenants": "for the platform's admins",
  "POST /v1/tenants": "a name that another tenant has",
  "GET /v1/tenants/{tenant}": "for the platform's admins",
  "PATCH /v1/tenants/{tenant}": "for the platform's admins",
};

it("the routes whose reads see every tenant are these, each for a reason", () => {
  const found = ROUTES.filter((route) => route.sees === "every-tenant").map(
    (route) => `${route.method.toUpperCase()} ${route.path}`,
  );
  expect(found.toSorted()).toEqual(Object.keys(SEES_EVERY_TENANT).toSorted());
});

describe("what a handler is given", () => {
  const WHO = sql("test_who", "select current_user::text as who, (select count(*)::int from tenant) as tenants");
  const caller = () => ({ tenantId, homeTenantId: tenantId, credential: { kind: "token" }, actingFor: false }) as never;
  const request = { ip: "127.0.0.1", socket: {}, res: { get: () => "req", once: () => {} } } as never;
  const whole = () => {
    const { authority, db } = server;
    return { authority, db, readers: createReaders({ db, clock: systemClock, log: silentLog }) } as never;
  };

  it("reads as the reader and one tenant, by itself and through the authority, however it reads", async () => {
    const { db, authority } = contextOf(whole(), request, caller(), { sees: undefined } as never);
    const seen = { who: "punctual_reader", tenants: 1 };
    expect(await db.query(WHO)).toEqual([seen]);
    expect(await authority.db.query(WHO)).toEqual([seen]);
    expect(await authority.db.queryWithin(1_000, WHO, [])).toEqual([seen]);
    expect(await authority.db.transact({ deadlineMs: 5_000, lockTimeoutMs: 0 }, (tx) => tx.query(WHO))).toEqual([seen]);
  });

  it("writes as ourselves, and says where it was asked", async () => {
    const { authority } = contextOf(whole(), request, caller());
    const [row] = await authority.transact("test", async (tx) => {
      expect(tx.origin).toEqual({ requestId: "req", address: "127.0.0.1", keyId: null, homeTenantId: tenantId });
      return tx.query<{ who: string; tenants: number }>(WHO);
    });
    expect(row).toMatchObject({ tenants: 2 });
    expect(row!.who).not.toBe("punctual_reader");
  });

  it("reads everything where the route says so, or nobody calls", async () => {
    const open = contextOf(whole(), request, caller(), { sees: "every-tenant" } as never);
    expect(await open.db.query(WHO)).toMatchObject([{ tenants: 2 }]);
    expect(await contextOf(whole(), request).db.query(WHO)).toMatchObject([{ tenants: 2 }]);
  });
});

describe("the doctor", () => {
  const look = () => wallCheck.examine({ db: server.db } as never);

  it("says that the wall stands, and what of it does not", async () => {
    expect(await look()).toMatchObject({ status: "ok" });
    await server.db.run("alter table effect disable row level security");
    expect(await look()).toMatchObject({ status: "finding", rows: [{ table: "effect" }] });
    await raiseWall(server.db);
    expect(await look()).toMatchObject({ status: "ok" });
  });
});
