import { SECRET, sealedTextOf } from "../secrets/forms.ts";

/** Which fields differ between two definitions, by their paths. */

/** `from` is missing where the field is new, `to` where it is gone. */
export type FieldChange = { readonly field: string; readonly from?: unknown; readonly to?: unknown };

const CHANGES_AT_MOST = 200;

/** Objects are compared field by field, lists and everything else as a whole; `hasMore` where there are too many to tell. */
export function changedFields(
  before: object,
  after: object,
): { readonly changes: readonly FieldChange[]; readonly hasMore: boolean } {
  const changes: FieldChange[] = [];
  collect(before, after, "", changes);
  return { changes: changes.slice(0, CHANGES_AT_MOST), hasMore: changes.length > CHANGES_AT_MOST };
}

function collect(before: object, after: object, path: string, changes: FieldChange[]): void {
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (changes.length > CHANGES_AT_MOST) return;
    const [from, to] = [ownValue(before, name), ownValue(after, name)];
    if (isSame(from, to)) continue;
    const field = path === "" ? name : `${path}.${name}`;
    if (isPlain(from) && isPlain(to) && !isSecret(from) && !isSecret(to)) collect(from, to, field, changes);
    else changes.push({ field, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) });
  }
}

/** A payload may have any field, `__proto__` and `constructor` included. */
function ownValue(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value;
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A secret is one value, whether sealed or as it is shown. */
function isSecret(value: object): boolean {
  return Object.hasOwn(value, SECRET) || sealedTextOf(value) !== undefined;
}

/** Whatever the order of fields. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, k) => isSame(one, b[k]));
  if (!isPlain(a) || !isPlain(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => Object.hasOwn(b, name) && isSame(ownValue(a, name), ownValue(b, name)));
}
