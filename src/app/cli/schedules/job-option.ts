import type { Job } from "../../../client/types.ts";
import { UsageError } from "../usage.ts";
import { readJsonObject } from "./json-option.ts";

export const JOB_OPTION = "--job <job>";
export const JOB_OPTION_IS =
  "what: a registered job (report.run-summary@1), one of your own workers (remote:sync@1), a URL to call, or any job as JSON or @file";

const REMOTE = "remote:";
const EXAMPLE = '{"kind":"http","url":"https://api.example.com/reports","method":"PUT"}';

/** A job by the shortest way to say it; what has more to it is said as JSON, as the API takes it. */
export function readJob(text: string): Job {
  if (text.startsWith("{") || text.startsWith("@")) return JSON.parse(readJsonObject("--job", text, EXAMPLE)) as Job;
  if (/^https?:\/\//i.test(text)) return { kind: "http", url: text };
  const kind = text.startsWith(REMOTE) ? "remote" : "function";
  const [, name, version = "1"] = /^([^@:/\s]+)(?:@([1-9]\d{0,6}))?$/.exec(text.replace(REMOTE, "")) ?? [];
  if (name === undefined) {
    throw new UsageError(
      `--job: found "${text}"; allowed: name@version, such as report.run-summary@1, ${REMOTE}name@version, a URL, or JSON such as '${EXAMPLE}'`,
    );
  }
  return { kind, name, version: Number(version) };
}
