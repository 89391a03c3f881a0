import type { Command } from "commander";
import { type Client, createClient } from "../../client/client.ts";
import { systemClock } from "../../kernel/clock.ts";
import { operatorError } from "../../kernel/errors.ts";
import type { Config } from "../config.ts";
import { findSecret } from "../secret.ts";
import { UsageError } from "./usage.ts";
import { findWhereabouts } from "./whereabouts.ts";

/** Options of every command that asks the API. */
export type ClientOptions = { json?: boolean; url?: string; key?: string; tenant?: string };

export function withClientOptions(command: Command): Command {
  return command
    .option("--json", "print the API's answer as JSON, one line; errors too")
    .option("--url <url>", "where the API is (default: PUNCTUAL_URL, else the system of this checkout)")
    .option("--key <key>", "API key (default: PUNCTUAL_KEY, else the demo's)")
    .option("--tenant <tenant>", "the tenant to act for, ten_…, with an admin's key (default: the key's own)");
}

/** A client for the API that is meant. */
export function clientFor(options: ClientOptions, config: Config): Client {
  return createClient({ ...targetOf(options, config), sleep: (ms) => systemClock.sleep(ms) });
}

/**
 * The API that is meant: options before environment before the running system of this checkout. The demo's
 * key is sent to no other address than the demo's.
 */
export function targetOf(options: ClientOptions, config: Config): { url: string; key: string; tenant?: string } {
  const ownUrl = findWhereabouts(config.PUNCTUAL_DIR).url;
  const url = options.url ?? config.PUNCTUAL_URL ?? ownUrl;
  if (url === undefined) {
    throw operatorError(
      "not-running",
      `nothing of this checkout is running (PUNCTUAL_DIR is ${config.PUNCTUAL_DIR}). Start it with: npm start; or name another system with --url`,
    );
  }
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? "")) {
    throw new UsageError(`--url: found "${url}"; allowed: an address such as http://127.0.0.1:8080`);
  }
  const isOwn = ownUrl !== undefined && new URL(url).origin === new URL(ownUrl).origin;
  const key = options.key ?? config.PUNCTUAL_KEY ?? (isOwn ? findSecret(config.PUNCTUAL_DIR, "key") : undefined);
  if (key === undefined) throw new UsageError(`--key: is missing; ${url} needs an API key (--key or PUNCTUAL_KEY)`);
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new UsageError("--key: is no API key; allowed: pk_<prefix>_<secret>, or a token");
  const { tenant } = options;
  if (tenant !== undefined && !/^ten_[0-9a-z]{26}$/.test(tenant)) {
    throw new UsageError(`--tenant: found "${tenant}"; allowed: a tenant's id, ten_… (punctual tenants list)`);
  }
  return { url, key, ...(tenant === undefined ? {} : { tenant }) };
}
