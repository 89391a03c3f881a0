import { callerError } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";

declare const objectKey: unique symbol;
/** `run/attempt/name`, checked. Made only here, so a store never sees a path somebody else wrote. */
export type ObjectKey = string & { readonly [objectKey]: true };

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const SEGMENTS = 3;

/**
 * The immutable name of one attempt's output. The fence is in it, so two attempts can never mean the same object,
 * not even after a restore that handed an attempt number out twice.
 * @throws `object-name-invalid` (caller) when `name` is not a plain file name of 1 to 100 characters.
 */
export function createObjectKey(of: { runId: Uuid; attempt: number; fence: bigint; name: string }): ObjectKey {
  return parseObjectKey(`${of.runId}/a${of.attempt}-f${of.fence}/${of.name}`);
}

/** @throws `object-name-invalid` (caller) for anything but three plain segments: no traversal, no hidden files. */
export function parseObjectKey(text: string): ObjectKey {
  const segments = text.split("/");
  if (segments.length !== SEGMENTS || !segments.every((segment) => SEGMENT.test(segment))) {
    throw callerError("object-name-invalid", "An object's name cannot be used", {
      field: "name",
      found: text.slice(0, 400),
      allowed: "letters, digits, dot, underscore and hyphen, beginning with a letter or digit, at most 100 characters",
    });
  }
  return text as ObjectKey;
}
