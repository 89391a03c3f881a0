import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Config, readConfig } from "../config.ts";

const CHECKOUT = fileURLToPath(new URL("../../..", import.meta.url));

/** The configuration of a command: what is not said elsewhere belongs to this checkout, wherever the command was typed. */
export function settingsOf(env: Readonly<Record<string, string | undefined>>): Config {
  return readConfig({ ...env, PUNCTUAL_DIR: env.PUNCTUAL_DIR || join(CHECKOUT, ".punctual") });
}
