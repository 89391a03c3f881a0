import { afterAll, expect, it } from "vitest";
import { migrateToLatest } from "../../../src/store/migrate.ts";
import { type Server, startPrimary, startStandby, takeBackup } from "../../support/copies.ts";
import { punctual } from "../cli/punctual.ts";

const servers: Server[] = [];
afterAll(() => Promise.all(servers.toReversed().map((server) => server.stop())));

it("on a read-only standby the doctor says what it is, and looks at the promises all the same", async () => {
  const primary = await startPrimary();
  servers.push(primary);
  await migrateToLatest(primary.url);
  const standby = await startStandby(await takeBackup(primary), primary);
  servers.push(standby);
  const { exitCode, out, err } = await punctual(["doctor", "--json"], { DATABASE_URL: standby.url });
  expect(err).toBe("");
  const { checks } = JSON.parse(out) as { checks: { id: string; status: string }[] };
  expect(exitCode).toBe(1);
  expect(checks).toContainEqual(
    expect.objectContaining({ id: "primary", status: "finding", sentence: "DATABASE_URL names a read-only standby" }),
  );
  expect(checks).toContainEqual(expect.objectContaining({ id: "server", status: "skipped" }));
  expect(checks.filter((one) => one.status === "failed")).toEqual([]);
  const promises = await punctual(["doctor", "--quiet", "--only", "invariant"], { DATABASE_URL: standby.url });
  expect(promises).toEqual({ exitCode: 0, out: "", err: "" });
}, 300_000);
