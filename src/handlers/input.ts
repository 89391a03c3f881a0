import type { z } from "zod";
import { type KnownSecrets, NO_SECRETS } from "../domain/secrets/known.ts";

/** A refused payload in words, issue by issue: the field, what was found, what is allowed. */
export function explainInput(error: z.ZodError, secrets: KnownSecrets = NO_SECRETS): string {
  const issues = error.issues.flatMap(mostTelling);
  const more = issues.length > SHOWN ? ` (and ${issues.length - SHOWN} more)` : "";
  return `The payload does not fit the job. ${issues
    .slice(0, SHOWN)
    .map((issue) => explainIssue(issue, secrets))
    .join(". ")}${more}`;
}

type Issue = z.core.$ZodIssue;

const SHOWN = 5;
const FOUND_LIMIT = 80;

/** Of a union's branches the one that got furthest says what is wrong; if none got anywhere, all are what is allowed. */
function mostTelling(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return [issue];
  const branches = issue.errors.map((branch) => branch.flatMap(mostTelling));
  const depth = (branch: Issue[]) => Math.max(0, ...branch.map((each) => each.path.length));
  const deepest = branches.reduce((best, branch) => (depth(branch) > depth(best) ? branch : best));
  if (depth(deepest) > 0) return deepest.map((each) => ({ ...each, path: [...issue.path, ...each.path] }));
  const allowed = branches.map((branch) => branch.map((each) => each.message).join(" and "));
  return [{ ...issue, message: allowed.join(", or ") }];
}

function explainIssue(issue: Issue, secrets: KnownSecrets): string {
  const secret = secrets.paths.find((path) => startsWith(issue.path, path));
  if (secret !== undefined) {
    // Its parts are as secret as it is, names included.
    const allowed = issue.code === "unrecognized_keys" ? "no such fields" : secrets.scrub(issue.message);
    return `${showField(secret)}: found a secret; allowed: ${allowed}`;
  }
  const field = showField(issue.path);
  if (secrets.paths.some((path) => startsWith(path, issue.path))) {
    return `${field}: found something with a secret in it; allowed: ${secrets.scrub(issue.message)}`;
  }
  return `${field}: found ${show(issue.input)}; allowed: ${issue.message}`;
}

function showField(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "the payload" : path.map(String).join(".");
}

function startsWith(path: readonly PropertyKey[], beginning: readonly PropertyKey[]): boolean {
  return beginning.length <= path.length && beginning.every((part, i) => String(part) === String(path[i]));
}

function show(found: unknown): string {
  if (found === undefined) return "nothing";
  const text = JSON.stringify(found) ?? typeof found;
  return text.length > FOUND_LIMIT ? `${text.slice(0, FOUND_LIMIT)}…` : text;
}
