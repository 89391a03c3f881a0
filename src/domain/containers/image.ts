/** An image's name in full, as the engine gets it: nothing is left to what an engine would add. */
export type Image = { name: string; tag: string | undefined; digest: string | undefined };

const REGISTRY = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i;
const PART = /^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const DEFAULT_REGISTRY = "docker.io";

/** Undefined: no name of an image. Short names are those of docker.io, as Docker has it, whatever the engine's own list says. */
export function parseImage(text: string): Image | undefined {
  const [rest, digest, more] = text.split("@");
  if (more !== undefined || (digest !== undefined && !DIGEST.test(digest))) return undefined;
  const colon = rest!.indexOf(":", rest!.lastIndexOf("/") + 1);
  const path = colon === -1 ? rest! : rest!.slice(0, colon);
  const tag = colon === -1 ? undefined : rest!.slice(colon + 1);
  if (tag !== undefined && !TAG.test(tag)) return undefined;
  const parts = path.split("/");
  const registry = namesRegistry(parts) ? parts.shift()!.toLowerCase() : DEFAULT_REGISTRY;
  if (!REGISTRY.test(registry) || !parts.every((part) => PART.test(part))) return undefined;
  if (registry === DEFAULT_REGISTRY && parts.length === 1) parts.unshift("library");
  const named = tag === undefined && digest === undefined ? "latest" : tag;
  return { name: [registry, ...parts].join("/"), tag: named, digest };
}

const namesRegistry = (parts: readonly string[]) =>
  parts.length > 1 && (parts[0] === "localhost" || /[.:]/.test(parts[0]!));

/** A digest says all: with one, the tag says nothing that an engine would go by. */
export function showImage({ name, tag, digest }: Image): string {
  return digest === undefined ? `${name}:${tag}` : `${name}@${digest}`;
}

export const registryOf = ({ name }: Image): string => name.slice(0, name.indexOf("/"));

/**
 * Patterns of an allow list; `*` stands for any characters. One without tag and digest takes all of them:
 * `registry.example.com/team/*` takes every image below, `registry.example.com/team/*@sha256:*` those that are pinned.
 */
export function matchesImage(pattern: string, image: Image): boolean {
  const whole = inFull(pattern);
  return matches(whole, showImage(image)) || (!isSpecific(pattern) && matches(whole, image.name));
}

const isSpecific = (pattern: string) =>
  pattern.includes("@") || pattern.slice(pattern.lastIndexOf("/") + 1).includes(":");

function inFull(pattern: string): string {
  const parts = pattern.split("/");
  if (pattern.startsWith("*") || namesRegistry(parts) || (parts.length > 1 && parts[0]!.includes("*"))) return pattern;
  return `${DEFAULT_REGISTRY}/${parts.length === 1 ? "library/" : ""}${pattern}`;
}

/** Each text between stars at the first place where it fits: that leaves most to the others, so no other has to be tried. */
function matches(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const one of others) {
    const found = text.indexOf(one, at);
    if (found === -1) return false;
    at = found + one.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
