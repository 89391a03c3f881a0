import { expect, test } from "vitest";
import { explainFailedStart } from "../../../src/app/embedded/explain.ts";

// The sentences as PostgreSQL 18, initdb, Redis 7 and Node print them.
test.each([
  ['FATAL:  could not write lock file "postmaster.pid": No space left on device', "disk-full"],
  ['initdb: error: could not write to file "x": No space left on device', "disk-full"],
  ["Can't open or create append-only dir appendonlydir: Permission denied", "no-permission"],
  ["Error: EACCES: permission denied, mkdir '/srv/.punctual'", "no-permission"],
  ["Error: EROFS: read-only file system, mkdir '/srv/.punctual'", "no-permission"],
  ['LOG:  could not bind IPv4 address "127.0.0.1": Address already in use', "port-taken"],
  ["Warning: Could not create server TCP listening socket 127.0.0.1:1: bind: Address already in use", "port-taken"],
  ["FATAL:  something new", "server-did-not-start"],
])("%s is %s", (said, code) => {
  expect(explainFailedStart("PostgreSQL", 5555, "/srv/.punctual", said)).toMatchObject({ code, actor: "operator" });
});
