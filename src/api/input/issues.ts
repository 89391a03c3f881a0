import type { z } from "zod";
import { type FieldFault, MOST_NAMED_FAULTS, problemOfFaults } from "../problems/problem.ts";
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
  const parsed = parse(schema, value);
  if (parsed.success) return parsed.data;
  throw problemOfFaults("invalid-request", faultsOfAll(parsed.error.issues as SeenIssue[], root));
}

/** What is wrong with `value`, the member of the body called `member`; empty when it fits. */
export function findFaults(schema: z.ZodType, value: unknown, member: string): FieldFault[] {
  const issues = parse(schema, value).error?.issues ?? [];
  return faultsOfAll(
    issues.map((issue) => ({ ...issue, path: [member, ...issue.path] }) as SeenIssue),
    member,
  );
}

/** Words are found for those that will be named: a body has room for a hundred thousand others, which are only counted. */
function faultsOfAll(issues: readonly SeenIssue[], root: string): FieldFault[] {
  const faults: FieldFault[] = [];
  for (const issue of issues) {
    if (faults.length < MOST_NAMED_FAULTS) for (const fault of faultsOf(issue, root)) faults.push(fault);
    else for (const _ of issue.code === "unrecognized_keys" ? issue.keys : [issue]) faults.push(unnamed(root));
  }
  return faults;
}

const unnamed = (root: string): FieldFault => ({ field: root, message: "is not accepted" });

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown) {
  return schema.safeParse(value, {
    reportInput: true,
    error: (issue) => {
      // zod keeps extra members of an issue: the object's own keys are known only here.
      const raw = issue as RawIssue;
      const shape = (raw.inst?._zod.def as { shape?: Record<string, unknown> } | undefined)?.shape;
      if (shape !== undefined) raw.allowedKeys = Object.keys(shape);
      return undefined;
    },
  });
}

function faultsOf(issue: SeenIssue, root: string): FieldFault[] {
  const field = showPath(issue.path, root);
  const found = showValue(issue.input);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key, i) =>
        i < MOST_NAMED_FAULTS
          ? unknownField(showPath([...issue.path, key], root), key, issue.allowedKeys ?? [])
          : unnamed(root),
      );
    case "invalid_type": {
      const allowed = kindOf(issue);
      return [{ field, message: issue.input === undefined ? "is missing" : `must be ${allowed}`, found, allowed }];
    }
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
    case "invalid_format":
      if (!issue.message.startsWith("Invalid ")) return [inItsOwnWords(field, found, issue.message)];
      return [{ field, message: "does not have the right form", found, allowed: formOf(issue) }];
    default:
      return [inItsOwnWords(field, found, issue.message)];
  }
}

/** A schema's own message says what must be so, or names what is allowed. */
function inItsOwnWords(field: string, found: string, message: string): FieldFault {
  if (message.startsWith("must ")) return { field, message, found };
  return { field, message: "is not accepted", found, ...(message === "Invalid input" ? {} : { allowed: message }) };
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
  const fitting = issue.errors.filter((option) => !option.some(isOfAnotherKind));
  if (fitting.length === 0 && issue.errors.length > 0) return [ofKinds(issue, field)];
  // The option that got furthest is the one that was meant.
  const nearest = fitting.toSorted((a, b) => depthOf(b) - depthOf(a))[0] ?? [];
  const faults = faultsOfAll(
    nearest.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }) as SeenIssue),
    root,
  );
  return faults.length > 0 ? faults : [{ field, message: issue.message, found: showValue(issue.input) }];
}

/** Not this option's type, or none of its literals: it says nothing of what the caller meant. */
function isOfAnotherKind(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === "invalid_type" || issue.code === "invalid_value");
}

/** No option was meant for sure, so all are what is allowed. */
function ofKinds(issue: SeenIssue & z.core.$ZodIssueInvalidUnion, field: string): FieldFault {
  const reasons = issue.errors.map((option) => option.find(isOfAnotherKind) as SeenIssue);
  const literals = reasons.flatMap((one) => (one.code === "invalid_value" ? one.values.map(String) : []));
  const kinds = reasons.flatMap((one) => (one.code === "invalid_type" ? [kindOf(one)] : []));
  const fault = ofChoices(field, showValue(issue.input), issue.input, literals);
  return { ...fault, allowed: [...literals, ...new Set(kinds)].join(", or ").replaceAll(/, or (?=.*, or )/g, ", ") };
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

/** "a string"; of an object also its fields. */
function kindOf(issue: SeenIssue & z.core.$ZodIssueInvalidType): string {
  const { allowedKeys } = issue;
  return nameOf(issue.expected) + (allowedKeys === undefined ? "" : ` of ${allowedKeys.join(", ")}`);
}

function formOf(issue: SeenIssue & z.core.$ZodIssueInvalidStringFormat): string {
  if (issue.format === "datetime") return "an RFC 3339 instant with an offset, such as 2026-10-01T09:00:00Z";
  return issue.format === "regex" ? `text that matches ${issue.pattern}` : issue.format;
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
    never: "left out",
  };
  return names[expected] ?? expected;
}
