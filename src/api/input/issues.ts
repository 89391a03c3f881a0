import type { z } from "zod";
import { type FieldFault, Problem, sentenceOf } from "../problem.ts";
import { didYouMean } from "./did-you-mean.ts";

/** `["payload","items",3,"a b"]` → `payload.items[3]["a b"]`; the root is called by `root`. */
export function showPath(path: readonly PropertyKey[], root: string): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(String(part))) text += text === "" ? String(part) : `.${String(part)}`;
    else text += `[${showValue(String(part))}]`;
  }
  return text === "" ? root : text;
}

/** A value as a person can read it, never longer than a line. */
export function showValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}… (${text.length} characters)` : text;
}

type RawIssue = z.core.$ZodRawIssue & { allowedKeys?: string[] };
type SeenIssue = z.core.$ZodIssue & { allowedKeys?: string[] };

/** Parses `value`, or throws a problem naming every field that is wrong, what was found and what is allowed. */
export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown, root: string): z.output<Schema> {
  const parsed = schema.safeParse(value, {
    reportInput: true,
    error: (issue) => {
      // zod keeps extra members of an issue: the object's own keys are known only here.
      const raw = issue as RawIssue;
      const shape = (raw.inst?._zod.def as { shape?: Record<string, unknown> } | undefined)?.shape;
      if (raw.code === "unrecognized_keys" && shape !== undefined) raw.allowedKeys = Object.keys(shape);
      return undefined;
    },
  });
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.flatMap((issue) => faultsOf(issue as SeenIssue, root));
  const first = sentenceOf(errors[0]!);
  throw new Problem("invalid-request", errors.length === 1 ? first : `${first} (and ${errors.length - 1} more)`, {
    errors: errors.slice(0, 50),
  });
}

function faultsOf(issue: SeenIssue, root: string): FieldFault[] {
  const field = showPath(issue.path, root);
  const found = showValue(issue.input);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownField(showPath([...issue.path, key], root), key, issue.allowedKeys ?? []));
    case "invalid_type":
      return issue.input === undefined
        ? [{ field, message: "is missing", found, allowed: nameOf(issue.expected) }]
        : [{ field, message: `must be ${nameOf(issue.expected)}`, found, allowed: nameOf(issue.expected) }];
    case "invalid_value":
      return [ofChoices(field, found, issue.input, issue.values.map(String))];
    case "invalid_union":
      return unionFaults(issue, field, root);
    case "too_small":
    case "too_big":
      return [
        { field, message: `is ${issue.code === "too_big" ? "too big" : "too small"}`, found, allowed: boundOf(issue) },
      ];
    case "invalid_key":
    case "invalid_element":
      return [{ field, message: issue.issues[0]?.message ?? issue.message, found }];
    default:
      return [{ field, message: issue.message, found }];
  }
}

function unknownField(field: string, key: string, allowedKeys: readonly string[]): FieldFault {
  const meant = didYouMean(key, allowedKeys);
  return {
    field,
    message: "is not a known field",
    found: showValue(key),
    allowed: allowedKeys.length === 0 ? "no fields" : allowedKeys.join(", "),
    ...(meant === undefined ? {} : { didYouMean: meant }),
  };
}

function ofChoices(field: string, found: string, input: unknown, choices: readonly string[]): FieldFault {
  const meant = typeof input === "string" ? didYouMean(input, choices) : undefined;
  return {
    field,
    message: input === undefined ? "is missing" : "is not one of the allowed values",
    found,
    allowed: choices.join(", "),
    ...(meant === undefined ? {} : { didYouMean: meant }),
  };
}

function unionFaults(issue: SeenIssue & z.core.$ZodIssueInvalidUnion, field: string, root: string): FieldFault[] {
  const options = (issue as { options?: unknown[] }).options;
  if (options !== undefined) {
    const discriminator = (issue as { discriminator?: string }).discriminator ?? "";
    const value = (issue.input as Record<string, unknown> | null)?.[discriminator];
    return [ofChoices(field, showValue(value), value, options.map(String))];
  }
  // The option that got furthest is the one that was meant.
  const nearest = issue.errors.toSorted((a, b) => depthOf(b) - depthOf(a))[0] ?? [];
  const faults = nearest.flatMap((inner) =>
    faultsOf({ ...(inner as SeenIssue), path: [...issue.path, ...inner.path] } as SeenIssue, root),
  );
  return faults.length > 0 ? faults : [{ field, message: issue.message, found: showValue(issue.input) }];
}

function depthOf(issues: readonly z.core.$ZodIssue[]): number {
  return Math.max(0, ...issues.map((issue) => issue.path.length));
}

function boundOf(issue: SeenIssue & (z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall)): string {
  const unit = issue.origin === "string" ? " characters" : issue.origin === "array" ? " items" : "";
  return issue.code === "too_big"
    ? `${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}${unit}`
    : `${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}${unit}`;
}

function nameOf(expected: string): string {
  const names: Record<string, string> = {
    int: "a whole number",
    number: "a number",
    string: "a string",
    boolean: "true or false",
    object: "an object",
    array: "a list",
    record: "an object",
  };
  return names[expected] ?? expected;
}
