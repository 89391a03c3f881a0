import { LRUCache } from "lru-cache";
import { type KnownSecrets, SCRUBBED } from "../domain/secrets/known.ts";
import type { OutputBytes } from "../handlers/context.ts";
import { jsonOf } from "../kernel/storable.ts";

/** The secrets this process has opened, as far back as it remembers: a job may leave something behind that speaks later. */
export type SecretsInUse = {
  add(secrets: KnownSecrets): void;
  /** The text without any of them. */
  scrub(text: string): string;
};

const MOST_REMEMBERED = 1_000;

export function createSecretsInUse(): SecretsInUse {
  const known = new LRUCache<KnownSecrets, true>({ max: MOST_REMEMBERED });
  return {
    add(secrets) {
      if (secrets.count > 0) known.set(secrets, true);
    },
    scrub: (text) => [...known.keys()].reduce((left, secrets) => secrets.scrub(left), text),
  };
}

/** A JSON value as a job gave it, without secrets; undefined for what is no JSON. */
export function scrubbed(value: unknown, secrets: KnownSecrets): unknown {
  if (secrets.count === 0) return value;
  try {
    const text = jsonOf(value);
    return text === undefined ? undefined : secrets.scrubJson(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A line of a log: JSON, and JSON still when a number in it was a secret. */
export function scrubLine(line: string, secrets: KnownSecrets): string {
  try {
    return `${JSON.stringify(secrets.scrubJson(JSON.parse(line)))}\n`;
  } catch {
    return secrets.scrub(line);
  }
}

/** What an output is called is kept and shown, its bytes are the job's own. */
export function outputWithout(secrets: KnownSecrets, output: OutputBytes): OutputBytes {
  const { name, mediaType } = output;
  // In the one and the other, brackets are not allowed.
  const without = (text: string) => secrets.scrub(text).replaceAll(SCRUBBED, "secret");
  return secrets.count === 0 ? output : { ...output, name: without(name), mediaType: without(mediaType) };
}
