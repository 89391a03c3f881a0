import { defineConfig } from "vitest/config";
import { findRedisBinary } from "./src/app/embedded/redis.ts";
import { hasPodman } from "./test/support/find-podman.ts";
import { rabbitmqAvailable } from "./test/support/rabbitmq.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    pool: "forks",
    // Much of a test's time is waiting for servers and processes of its own: three at once keep two cores busy.
    maxWorkers: 3,
    // Patience decides no test: it is for machines that are slow, or busy with something else.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    // Without Redis, RabbitMQ or Podman a file may have nothing to run (see test/support). ops/bootstrap.mjs refuses a run without tests.
    passWithNoTests: findRedisBinary(process.env.PATH) === undefined || !rabbitmqAvailable || !hasPodman(),
  },
});
