import type { z } from "zod";

/** A refused payload in words, issue by issue: the field, what was found, what is allowed. */
export function explainInput(error: z.ZodError): string {
  const issues = error.issues.flatMap(mostTelling);
  const more = issues.length > SHOWN ? ` (and ${issues.length - SHOWN} more)` : "";
  return `The payload does not fit the job. ${issues.slice(0, SHOWN).map(explainIssue).join(". ")}${more}`;
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

function explainIssue(issue: Issue): string {
  const field = issue.path.length === 0 ? "the payload" : issue.path.map(String).join(".");
  return `${field}: found ${show(issue.input)}; allowed: ${issue.message}`;
}

function show(found: unknown): string {
  if (found === undefined) return "nothing";
  const text = JSON.stringify(found) ?? typeof found;
  return text.length > FOUND_LIMIT ? `${text.slice(0, FOUND_LIMIT)}…` : text;
}
