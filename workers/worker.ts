/** A worker replica: runs attempts, and nothing else. Scale it by starting more. */
import { environment, readConfig } from "../src/app/config.ts";
import { runRole } from "../src/app/run-role.ts";
import { printError } from "../src/app/shutdown.ts";

runRole("worker", readConfig(environment())).then(
  () => process.exit(0),
  (error: unknown) => {
    printError(error);
    process.exit(1);
  },
);
