import type { Path } from "./forms.ts";
import { takingOut } from "./taking-out.ts";

/** Secrets in the hands of who must not tell them: what it says goes through here first. */
export type KnownSecrets = {
  readonly count: number;
  readonly paths: readonly Path[];
  /** The text without them, in whatever form they stand in it. */
  scrub(text: string): string;
  /** The same for every text, number and key of a JSON value. */
  scrubJson(value: unknown): unknown;
  /**
   * The same for the beginning of a text that goes on, without so much of its end as a secret may go on from: what is
   * left over (`rest`) is to be said again, with what follows.
   */
  scrubSettled(text: string): { settled: string; rest: string };
};

export const SCRUBBED = "[secret]";

/** What is shorter stands in too many other words to be taken out of them. */
const SHORTEST_SCRUBBED = 4;

export const NO_SECRETS: KnownSecrets = {
  count: 0,
  paths: [],
  scrub: (text) => text,
  scrubJson: (value) => value,
  scrubSettled: (settled) => ({ settled, rest: "" }),
};

export function knowSecrets(found: readonly { path: Path; value: unknown }[]): KnownSecrets {
  if (found.length === 0) return NO_SECRETS;
  // All forms of a large secret are megabytes, and secrets are remembered by the thousand: who needs the room may have it.
  let made: WeakRef<ReturnType<typeof takingOut>> | undefined;
  const without = () => {
    let taker = made?.deref();
    if (taker === undefined) {
      // Most attempts say nothing, so this is made for the first that does.
      taker = takingOut(formsOfAll(found.flatMap((one) => textsIn(one.value))), SHORTEST_SCRUBBED);
      made = new WeakRef(taker);
    }
    return taker;
  };
  const scrub = (text: string) => without().takeOut(text, SCRUBBED).left;
  return {
    count: found.length,
    paths: found.map((one) => one.path),
    scrub,
    scrubJson: (value) => scrubJson(value, scrub),
    scrubSettled(text) {
      const taker = without();
      const until = text.length - taker.longest;
      // Looking at the rest again costs as much as at what is settled: no more of it than the eightfold.
      if (until * 8 < taker.longest) return { settled: "", rest: text };
      const { left, rest } = taker.takeOut(text, SCRUBBED, until);
      return { settled: left, rest };
    },
  };
}

/** Every text and number of a secret. Names of fields are none: `password` is no secret, what stands in it is. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

function formsOfAll(texts: readonly string[]): Set<string> {
  return new Set(texts.filter((text) => text.length >= SHORTEST_SCRUBBED).flatMap(formsOf));
}

const LONG_LINE = 16;

/** A secret as it is, and as it looks where something else has written it down. */
function formsOf(text: string): string[] {
  const lines = text.split(/\r?\n/).filter((line) => line.length >= LONG_LINE && line !== text);
  return [text, ...lines].flatMap((one) => {
    const bytes = Buffer.from(one);
    const json = inJson(one);
    const percent = encodeURIComponent(one.toWellFormed());
    const hex = bytes.toString("hex");
    return [
      one,
      json,
      inJson(json),
      json.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
      percent,
      percent.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
      new URLSearchParams({ "": one }).toString().slice(1),
      hex,
      hex.toUpperCase(),
      inMarkup(one),
      ...base64Of(bytes),
    ];
  });
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

function inMarkup(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (char) => names[char]!);
}

const SHORTEST_CORE = 6;

/** Alone, and the part that does not depend on what stands before and behind it (`user:password`). */
function base64Of(bytes: Buffer): string[] {
  const whole = bytes.toString("base64");
  const cores = [0, 1, 2].map((before) => {
    const bits = (before + bytes.length) * 8;
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
  });
  const found = [whole, whole.replaceAll("=", ""), ...cores.filter((core) => core.length >= SHORTEST_CORE)];
  return [...found, ...found.map((one) => one.replaceAll("+", "-").replaceAll("/", "_"))];
}

function scrubJson(value: unknown, scrub: (text: string) => string): unknown {
  if (typeof value === "string") return scrub(value);
  if (typeof value === "number") return scrub(String(value)) === String(value) ? value : SCRUBBED;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => scrubJson(one, scrub));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [scrub(key), scrubJson(one, scrub)]));
}
