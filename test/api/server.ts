import { rmSync } from "node:fs";
import { Readable } from "node:stream";
import { z } from "zod";
import { type ApiParts, createApi, type ListeningApi } from "../../src/api/app.ts";
import type { Role } from "../../src/api/context.ts";
import { createJobCatalogue } from "../../src/api/job-catalogue.ts";
import { mintKey } from "../../src/api/keys.ts";
import { outputStoreOf } from "../../src/app/roles/output-store.ts";
import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { type Authority, createAuthority } from "../../src/authority/authority.ts";
import { createApiKey } from "../../src/authority/tenants/create-api-key.ts";
import { createTenant } from "../../src/authority/tenants/create-tenant.ts";
import { createPinnedZones } from "../../src/authority/timezones/pinned-zones.ts";
import { DEFAULT_ATTEMPT_LIMIT_MS } from "../../src/domain/definition.ts";
import type { LeaseTerms } from "../../src/domain/lease.ts";
import type { MasterKeys } from "../../src/domain/secrets/sealing.ts";
import { systemChance } from "../../src/kernel/chance.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { operatorError } from "../../src/kernel/errors.ts";
import { noFaults } from "../../src/kernel/faults.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { createFilesystemStore } from "../../src/objects/filesystem.ts";
import { createLogParts } from "../../src/objects/log-parts.ts";
import type { ObjectStore } from "../../src/objects/port.ts";
import { createDatabase, type Database } from "../../src/store/database.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

/** The API on a free port over a database of its own, and callers with keys. */
export type TestServer = {
  url: string;
  databaseUrl: string;
  authority: Authority;
  db: Database;
  /** Bytes by uri, standing for an object store. */
  objects: Map<string, string>;
  /** Where outputs of remote workers go. */
  stored: ObjectStore;
  metrics: ReturnType<typeof createMetrics>;
  tenant(name: string): Promise<string>;
  key(tenantId: string, role: Role): Promise<string>;
  close(): Promise<void>;
};

export const SECRET = "a secret for tests";
export const REPORT = { kind: "function", name: "report.run-summary", version: 1 } as const;

const jobs = createJobCatalogue([
  {
    name: REPORT.name,
    version: REPORT.version,
    input: z
      .looseObject({ refuse: z.never("must not be there").optional() })
      .describe("A report on a tenant's own runs"),
  },
]);

export async function startTestServer(
  changes: Partial<ApiParts> = {},
  port = 0,
  maxConnections = 4,
  masterKeys?: MasterKeys,
  lease: LeaseTerms = { ttlMs: 60_000, heartbeatMs: 10_000, marginMs: 5_000 },
): Promise<TestServer> {
  const database = await createTestDatabase();
  const metrics = createMetrics();
  const shared = { clock: systemClock, log: silentLog, metrics };
  const { zones } = loadBundledTzData();
  const db = createDatabase({ url: database.url, maxConnections, applicationName: "test-api", ...shared });
  let wake = () => {};
  const authority = createAuthority({
    ...shared,
    signals: { scheduleMoved: () => {}, outboxGrew: () => wake(), slotsFreed: () => {}, effectsDue: () => {} },
    db,
    pinned: createPinnedZones(zones),
    faults: noFaults,
    chance: systemChance,
    masterKeys,
    settings: {
      shard: 0,
      lease,
      attemptLimitMs: DEFAULT_ATTEMPT_LIMIT_MS,
      verbDeadlineMs: 10_000,
      lockTimeoutMs: 5000,
    },
  });
  const objects = new Map<string, string>();
  const outputsFolder = makeTemporaryFolder("punctual-outputs-");
  const stored = createFilesystemStore({ root: outputsFolder });
  const listening: ListeningApi = await createApi({
    ...shared,
    authority,
    db,
    jobs,
    effectKinds: ["email", "webhook"],
    containers: undefined,
    outboundAllow: [],
    version: "0.0.0-test",
    config: { secret: SECRET, closeGraceMs: 2000 },
    health: { readiness: async () => ({ ready: true, reasons: [] }), components: async () => [] },
    objects: {
      downloadLink: async () => undefined,
      async open({ uri, version }) {
        const bytes = objects.get(uri);
        if (bytes === undefined && !uri.startsWith("memory:")) return stored.open({ uri, version });
        if (bytes === undefined) throw operatorError("object-missing", "There is no such object", { uri });
        return Readable.from([bytes]);
      },
    },
    workers: {
      outputs: outputStoreOf(stored, 1_000_000),
      logs: createLogParts(stored, 100_000),
      onWork(callback) {
        wake = callback;
      },
    },
    board: undefined,
    ...changes,
  }).listen("127.0.0.1", port);
  let closed: Promise<void> | undefined;
  const close = async () => {
    await listening.close();
    await db.close();
    await database.drop();
    rmSync(outputsFolder, { recursive: true, force: true });
  };
  return {
    url: listening.url,
    databaseUrl: database.url,
    authority,
    db,
    objects,
    stored,
    metrics,
    tenant: async (name) => (await createTenant(authority, { name })).tenantId,
    async key(tenantId, role) {
      const minted = mintKey();
      await createApiKey(authority, { tenantId, role, label: `${role} of a test`, ...minted });
      return minted.key;
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}

export type Answer = { status: number; headers: Headers; body: Record<string, unknown>; text: string };

/** One real HTTP call; a string body goes as it is. */
export async function call(
  url: string,
  method: string,
  path: string,
  options: { key?: string | undefined; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    redirect: "manual",
    headers: {
      ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(options.body === undefined
      ? {}
      : {
          body:
            typeof options.body === "string"
              ? options.body
              : options.body instanceof Uint8Array
                ? (options.body as Uint8Array<ArrayBuffer>)
                : JSON.stringify(options.body),
        }),
  });
  const text = await response.text();
  const isJson = /[/+]json/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
}
