import { migrateToLatest } from "../store/migrate.ts";
import { readConfig } from "./config.ts";
import { ROLES, type RoleName, runRole } from "./run-role.ts";
import { printError } from "./shutdown.ts";
import { up } from "./up.ts";

async function main([command = "up"]: readonly string[]): Promise<void> {
  const config = readConfig(process.env);
  if (command === "up") return up(config, process.env["PATH"] ?? "");
  if (command === "migrate") {
    const { applied } = await migrateToLatest(config.DATABASE_URL!, { width: config.PUNCTUAL_PARTITIONS });
    console.log(applied.length === 0 ? "Nothing to migrate." : `Migrated: ${applied.join(", ")}`);
    return;
  }
  if ((ROLES as readonly string[]).includes(command)) return runRole(command as RoleName, config);
  throw new Error(`unknown command ${command}`);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    printError(error);
    process.exit(1);
  },
);
