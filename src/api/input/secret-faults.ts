import type { Path } from "../../domain/secrets/forms.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import type { FieldFault } from "../problems/problem.ts";
import { showPath } from "./issues.ts";

/** The same faults, without a word of what the caller sent as a secret. */
export function withoutSecrets(faults: readonly FieldFault[], secrets: KnownSecrets, root: string): FieldFault[] {
  if (secrets.count === 0) return [...faults];
  const fields = secrets.paths.map((path) => secretField(path, root));
  return faults.map((fault) => {
    const secret = fields.find((field) => isIn(fault.field, field));
    const { didYouMean: _, ...rest } = fault;
    const shown = secret === undefined ? fault : { ...rest, field: secret, found: "a secret" };
    return Object.fromEntries(Object.entries(shown).map(([name, text]) => [name, secrets.scrub(text)])) as FieldFault;
  });
}

export function secretField(path: Path, root: string): string {
  return showPath([root, ...path], root);
}

/** Of a secret that is no object or list, or of a field or item in one. */
function isIn(field: string, secret: string): boolean {
  return field === secret || (field.startsWith(secret) && /^[.[]/.test(field.slice(secret.length)));
}
