import { CommanderError } from "commander";
import { ApiProblem, NoAnswer } from "../../client/errors.ts";
import { messageOf, PunctualError } from "../../kernel/errors.ts";
import { sentenceOf } from "./field-fault.ts";
import { printNote, visible } from "./print.ts";
import { EXIT, UsageError } from "./usage.ts";

/** Tells a person (or, as JSON on standard error, a program) why a command failed; answers the exit code. */
export function explain(error: unknown, form: "sentence" | "json"): number {
  // Commander has said it already, or has printed the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (form === "json") printNote(JSON.stringify({ error: documentOf(error) }));
  else for (const line of sentencesOf(error)) printNote(`punctual: ${visible(line)}`);
  if (isOurFault(error)) printNote((error as Error).stack ?? String(error));
  return error instanceof UsageError ? EXIT.usage : EXIT.failed;
}

function documentOf(error: unknown): Record<string, unknown> {
  if (error instanceof ApiProblem) {
    const { code, message, status, retryable, retryAfterMs, requestId, errors, more } = error;
    return { ...more, code, message, status, retryable, retryAfterMs, requestId, errors };
  }
  const [message] = sentencesOf(error);
  if (error instanceof NoAnswer) return { code: "no-answer", message, retryable: true };
  if (error instanceof UsageError) return { code: "usage", message, retryable: false };
  if (error instanceof PunctualError) return { code: error.code, message, retryable: error.retryable };
  return { code: "internal", message, retryable: false };
}

function sentencesOf(error: unknown): string[] {
  if (error instanceof NoAnswer) {
    if (error.refused) return [`nothing answers at ${error.url}. Is it running? Start it with: npm start`];
    return [`${error.url}: ${error.message}`];
  }
  if (error instanceof ApiProblem) {
    const lines = error.errors.length > 0 ? error.errors.map(sentenceOf) : [error.message];
    if (error.retryAfterMs !== undefined)
      lines.push(`another try may help in ${Math.ceil(error.retryAfterMs / 1000)} s`);
    if (error.status === 401) lines.push("the key comes from --key, PUNCTUAL_KEY, or the system of this checkout");
    if (error.status >= 500 && error.requestId !== undefined) lines.push(`the request was ${error.requestId}`);
    return lines;
  }
  return [messageOf(error)];
}

function isOurFault(error: unknown): boolean {
  if (error instanceof PunctualError) return error.actor === "us";
  if (error instanceof ApiProblem || error instanceof NoAnswer || error instanceof UsageError) return false;
  // A file that cannot be written, a pipe that was closed: the system says it in its own words.
  return (error as { code?: unknown } | null)?.code === undefined;
}
