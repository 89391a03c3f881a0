import { callerError } from "../kernel/errors.ts";
import { instantOf, type Uuid } from "../kernel/ids.ts";

declare const objectKey: unique symbol;
/** `run/attempt/name`, checked. Made only here, so a store never sees a path somebody else wrote. */
export type ObjectKey = string & { readonly [objectKey]: true };

export type ObjectParts = { runId: Uuid; attempt: number; fence: bigint; name: string };

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const SEGMENTS = 3;
const PARTS =
  /^([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\/a(\d{1,9})-f(\d{1,18})\/([^/]+)$/;
const LAST_AT = Date.UTC(9999, 11, 31);

/**
 * The immutable name of one attempt's output. The fence is in it, so two attempts can never mean the same object,
 * not even after a restore that handed an attempt number out twice.
 * @throws `object-name-invalid` (caller) when `name` is not a plain file name of 1 to 100 characters.
 */
export function createObjectKey(of: ObjectParts): ObjectKey {
  return parseObjectKey(`${of.runId}/a${of.attempt}-f${of.fence}/${of.name}`);
}

/** @throws `object-name-invalid` (caller) for anything but three plain segments: no traversal, no hidden files. */
export function parseObjectKey(text: string): ObjectKey {
  if (!isObjectKey(text)) {
    throw callerError("object-name-invalid", "An object's name cannot be used", {
      field: "name",
      found: text.slice(0, 400),
      allowed: "letters, digits, dot, underscore and hyphen, beginning with a letter or digit, at most 100 characters",
    });
  }
  return text;
}

function isObjectKey(text: string): text is ObjectKey {
  const segments = text.split("/");
  return segments.length === SEGMENTS && segments.every((segment) => SEGMENT.test(segment));
}

/** What a name found in a store says; undefined when createObjectKey cannot have made it. */
export function readObjectKey(text: string): { key: ObjectKey; parts: ObjectParts } | undefined {
  const [, runId, attempt, fence, name] = PARTS.exec(text) ?? [];
  if (runId === undefined || !isObjectKey(text) || instantOf(runId) > LAST_AT) return undefined;
  return { key: text, parts: { runId, attempt: Number(attempt), fence: BigInt(fence!), name: name! } };
}
