import { PROBLEMS, type ProblemCode } from "./catalogue.ts";

/** One thing wrong with one field. */
export type FieldFault = {
  field: string;
  message: string;
  found?: string;
  allowed?: string;
  didYouMean?: string;
};

/** Ends a request with a problem document. `more` become members of the document. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldFault[];
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      errors?: readonly FieldFault[];
      more?: Record<string, unknown>;
      headers?: Record<string, string>;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.errors = options.errors ?? [];
    this.more = options.more ?? {};
    this.headers = options.headers ?? {};
  }
}

export function statusOf(code: ProblemCode): number {
  return PROBLEMS[code].status;
}

/** One fault of one field, as a whole problem. */
export function fieldProblem(fault: FieldFault): Problem {
  return problemOfFaults("invalid-request", [fault]);
}

/** So many faults are named by a document; the others are counted. */
export const MOST_NAMED_FAULTS = 50;

/** Says the first of one or more faults and counts the others. */
export function problemOfFaults(code: ProblemCode, errors: readonly FieldFault[]): Problem {
  const more = errors.length === 1 ? "" : ` (and ${errors.length - 1} more)`;
  return new Problem(code, sentenceOf(errors[0]!) + more, { errors: errors.slice(0, MOST_NAMED_FAULTS) });
}

/** `rule.zone: found "Europe/Berln"; no zone of this name; allowed: …; did you mean "Europe/Berlin"?` */
function sentenceOf(fault: FieldFault): string {
  const { field, message, found, allowed, didYouMean } = fault;
  // A field that is missing or unknown is all that was found.
  const saysFound = found !== undefined && !/^is (missing|not a known field)$/.test(message);
  const parts = [
    ...(saysFound ? [`found ${found}`] : []),
    message,
    ...(allowed === undefined || message.endsWith(allowed) ? [] : [`allowed: ${allowed}`]),
    ...(didYouMean === undefined ? [] : [`did you mean "${didYouMean}"?`]),
  ];
  return `${field}: ${parts.join("; ")}`;
}

/** The RFC 9457 document. */
export function documentOf(problem: Problem, context: { publicUrl: string; instance: string; requestId: string }) {
  const { status, title, retryable } = PROBLEMS[problem.code];
  return {
    type: `${context.publicUrl}/docs/errors#${problem.code}`,
    title,
    status,
    detail: problem.message,
    instance: context.instance,
    code: problem.code,
    retryable,
    requestId: context.requestId,
    ...(problem.errors.length > 0 ? { errors: problem.errors } : {}),
    ...problem.more,
  };
}
