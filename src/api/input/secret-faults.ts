import type { Path } from "../../domain/secrets/forms.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import { type FieldFault, MOST_NAMED_FAULTS } from "../problems/problem.ts";
import { showPath } from "./issues.ts";

/**
 * The same faults, without a word of what the caller sent as a secret, or keeps. What is found in a field that is none is the caller's own
 * word and stays as it is: taken out where it equals a secret that is kept, it would tell everybody who guesses that.
 */
export function withoutSecrets(faults: readonly FieldFault[], secrets: KnownSecrets, root: string): FieldFault[] {
  if (secrets.count === 0) return [...faults];
  const fields = secrets.paths.map((path) => secretField(path, root));
  return faults.map((fault, i) => {
    // Those are only counted.
    if (i >= MOST_NAMED_FAULTS) return { field: root, message: "is not accepted" };
    const { didYouMean: _, ...rest } = fault;
    const secret = fields.find((field) => isIn(fault.field, field));
    const around = fields.some((field) => isIn(field, fault.field));
    // Of what has a secret in it, the secret may be what was found wrong.
    const shown =
      secret !== undefined
        ? { ...rest, field: secret, found: "a secret" }
        : around
          ? { ...rest, found: "something with a secret in it" }
          : fault;
    const { allowed } = shown;
    return {
      ...shown,
      message: secrets.scrub(shown.message),
      ...(allowed === undefined ? {} : { allowed: secrets.scrub(allowed) }),
    };
  });
}

export function secretField(path: Path, root: string): string {
  return showPath([root, ...path], root);
}

/** Whether one field is the other, or a field or item in it. */
function isIn(field: string, outer: string): boolean {
  return field === outer || (field.startsWith(outer) && /^[.[]/.test(field.slice(outer.length)));
}
