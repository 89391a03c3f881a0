import type { Command } from "commander";
import { environment } from "../../config.ts";
import { readTextFile } from "../read-file.ts";
import { UsageError } from "../usage.ts";

/** Secrets are not typed: what stands on a command line is read by every other account and kept in histories. */
export function withSecretOption(command: Command): Command {
  return command.option(
    "--secret <name=source...>",
    "a secret field of the payload, read from @file or env:NAME; may be repeated",
  );
}

/** The payload's text with secrets put into it; undefined where there is neither. */
export function addSecrets(payloadJson: string | undefined, secrets: readonly string[] = []): string | undefined {
  if (secrets.length === 0) return payloadJson;
  const fields = secrets.map((text) => {
    const [, name, source] = /^([^=]+)=(@.+|env:.+)$/s.exec(text) ?? [];
    // Whatever else was typed may be the secret.
    if (name === undefined) throw new UsageError("--secret: allowed: name=@file or name=env:NAME");
    return `${JSON.stringify(name)}:${JSON.stringify({ $secret: readSource(source!) })}`;
  });
  // Written anew, the rest would lose what JavaScript's numbers cannot keep.
  const rest = (payloadJson ?? "{}").trim().slice(1);
  return `{${fields.join(",")}${/^\s*\}/.test(rest) ? "" : ","}${rest}`;
}

/** Secrets that are given alone go into the payload that is there; its own secrets stay as they are shown. */
export function withCurrentPayload<Options extends { payload?: string; secret?: string[] }>(
  options: Options,
  current: object,
): Options {
  if (options.secret === undefined || options.payload !== undefined) return options;
  const given = new Set(options.secret.map((text) => text.split("=")[0]));
  const others = Object.entries(current).filter(([name]) => !given.has(name));
  return { ...options, payload: JSON.stringify(Object.fromEntries(others)) };
}

/** A file's last line end belongs to the file. */
function readSource(source: string): string {
  if (source.startsWith("@")) return readTextFile(source.slice(1)).replace(/\r?\n$/, "");
  const name = source.slice("env:".length);
  const value = environment()[name];
  if (value === undefined || value === "") throw new UsageError(`--secret: ${name} is not set in the environment`);
  return value;
}
