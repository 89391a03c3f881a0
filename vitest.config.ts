import { defineConfig } from "vitest/config";
import { findRedisBinary } from "./src/app/embedded/redis.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    pool: "forks",
    // Most of a test's time is waiting for servers and processes of its own: two at once keep two cores busy.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Without Redis a file may have nothing to run (see test/support/redis.ts). ops/bootstrap.mjs refuses a run without tests.
    passWithNoTests: findRedisBinary(process.env.PATH) === undefined,
  },
});
