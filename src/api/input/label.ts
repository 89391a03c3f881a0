import { fieldProblem } from "../problems/problem.ts";

/** `name=value`, as a query names a label. The value may have a `=` of its own. */
export function readLabel(text: string): { name: string; value: string } {
  const equals = text.indexOf("=");
  if (equals < 1)
    throw fieldProblem({ field: "label", message: "is no label", found: JSON.stringify(text), allowed: "name=value" });
  return { name: text.slice(0, equals), value: text.slice(equals + 1) };
}
