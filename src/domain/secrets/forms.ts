import { createHash } from "node:crypto";
import type { Json } from "../definition.ts";

/**
 * How secrets look in a payload.
 * `{"$secret": value}`                      as a caller sends one;
 * `{"$sealed": "v1.<data key>.<bytes>"}`    as it is stored, and nobody may send it;
 * `{"$secret": null, "$version": "…"}`      as it is shown, and as it is sent back to be kept.
 * The version is taken from the sealed text, not from the secret: it tells one sealing from another and lets nobody guess.
 */
export const SECRET = "$secret";
export const SEALED = "$sealed";
const VERSION = "$version";

export type Path = readonly (string | number)[];

/** What a caller wrote in place of a secret. */
export type SecretForm =
  | { kind: "new"; path: Path; value: Json }
  | { kind: "kept"; path: Path; version: string | undefined };

/** What cannot be accepted, and where; never what was found in a secret. */
export type FormFault = { path: Path; message: string; found: string; allowed: string };

const SEALED_TEXT = /^v1\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z0-9_-]{38,}$/;
/** Keys that are ours, and what they are misspelt like: a secret under such a name would be stored as it is. */
const OURS = /^\s*\$\s*_?(secrets?|sealed)\s*$/i;
const OURS_IN_TEXT = /"\s*\$\s*_?(secrets?|sealed)\s*"/i;
const ALLOWED = '{"$secret": value}, or what was shown, unchanged: {"$secret": null, "$version": "…"}';

/** Whether JSON text may hold any of our forms: what it answers no to need not be walked. */
export function mayHoldForms(text: string): boolean {
  return text.includes("$") && OURS_IN_TEXT.test(text);
}

/** Whether JSON text may hold sealed values. */
export function mayHoldSealed(text: string): boolean {
  return text.includes(`"${SEALED}"`);
}

export function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The sealed text of a stored secret; undefined for everything else. */
export function sealedTextOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const text = value[SEALED];
  return typeof text === "string" && SEALED_TEXT.test(text) && Object.keys(value).length === 1 ? text : undefined;
}

/** A copy with what `at` answers in place of what it was asked about; undefined: look inside. */
export function mapJson(value: Json, at: (value: Json, path: Path) => Json | undefined, path: Path = []): Json {
  const replaced = at(value, path);
  if (replaced !== undefined) return replaced;
  if (Array.isArray(value)) return value.map((one, i) => mapJson(one, at, [...path, i]));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapJson(one, at, [...path, key])]));
}

/** Every secret in what a caller sent, or the first thing that cannot be accepted as one. */
export function readForms(sent: Json): { forms: readonly SecretForm[]; fault: FormFault | undefined } {
  const forms: SecretForm[] = [];
  let fault: FormFault | undefined;
  mapJson(sent, (value, path) => {
    if (fault !== undefined) return null;
    if (!isObject(value)) return undefined;
    const keys = Object.keys(value);
    const ours = keys.find((key) => OURS.test(key));
    if (ours === undefined) return undefined;
    const read = ours === SECRET ? readForm(value, keys, path) : refusal(path, ours);
    if ("allowed" in read) fault = read;
    else forms.push(read);
    return null;
  });
  return { forms, fault };
}

function readForm(value: { [key: string]: Json }, keys: readonly string[], path: Path): SecretForm | FormFault {
  const inside = value[SECRET]!;
  const others = keys.filter((key) => key !== SECRET);
  const version = value[VERSION];
  if (inside === null) {
    const isShown = others.every((key) => key === VERSION) && (version === undefined || typeof version === "string");
    if (isShown) return { kind: "kept", path, version: version as string | undefined };
  } else if (others.length === 0) {
    if (!holdsOurs(inside)) return { kind: "new", path, value: inside };
    return {
      path,
      message: "holds a secret inside a secret",
      found: "a secret",
      allowed: "plain JSON inside a secret",
    };
  }
  return { path, message: "is more than a secret", found: `${SECRET} and other fields`, allowed: ALLOWED };
}

function refusal(path: Path, key: string): FormFault {
  const message = key === SEALED ? "is how secrets are stored, and cannot be sent" : "is not how a secret is written";
  return { path, message, found: key.slice(0, 40), allowed: ALLOWED };
}

function holdsOurs(value: Json): boolean {
  let found = false;
  mapJson(value, (one) => {
    found ||= isObject(one) && Object.keys(one).some((key) => OURS.test(key));
    return found ? null : undefined;
  });
  return found;
}

/** Every sealed value of a stored payload. */
export function findSealed(stored: Json): { path: Path; text: string }[] {
  const found: { path: Path; text: string }[] = [];
  mapJson(stored, (value, path) => {
    const text = sealedTextOf(value);
    if (text === undefined) return undefined;
    found.push({ path, text });
    return null;
  });
  return found;
}

/** What people may see of what is stored. */
export function redactSealed(stored: Json): Json {
  return mapJson(stored, (value) => {
    const text = sealedTextOf(value);
    return text === undefined ? undefined : shownSecret(text);
  });
}

export function shownSecret(text: string): { [key: string]: Json } {
  return { [SECRET]: null, [VERSION]: versionOf(text) };
}

export function versionOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** The same for one field in every item of a list: an item may move in its list and take its secret along. */
export function placeOf(path: Path): string {
  return JSON.stringify(path.map((part) => (typeof part === "number" ? "*" : `.${part}`)));
}
