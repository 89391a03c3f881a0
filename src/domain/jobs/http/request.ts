import type { HttpJob } from "../http.ts";
import { FilledTooLong, fillJson, fillText, type JobFacts, roomFor } from "../template.ts";
import { LONGEST_HEADERS } from "./headers.ts";
import type { Hop } from "./redirect.ts";
import { fillUrl } from "./url.ts";

/** Of what was filled in, in bytes. */
const LONGEST_URL = 16_384;
const LONGEST_VALUE = 8_192;
const LONGEST_BODY = 4_194_304;

export type FilledRequest = { ok: true; hop: Hop } | { ok: false; fault: string };

/** What is sent: the job's templates with the run's facts. Faults name the place, and nothing of what was filled in. */
export function fillRequest(job: HttpJob, facts: JobFacts): FilledRequest {
  try {
    return requestOf(job, facts);
  } catch (error) {
    if (error instanceof FilledTooLong) return { ok: false, fault: error.message };
    throw error;
  }
}

function requestOf(job: HttpJob, facts: JobFacts): FilledRequest {
  const filled = fillUrl(job.url, (text, encode) => fillText(text, facts, roomFor(LONGEST_URL)("url"), encode));
  if (!filled.ok) return { ok: false, fault: `url: ${filled.fault}` };
  if (filled.url.length > LONGEST_URL) return { ok: false, fault: "url: comes out too long" };
  const url = URL.parse(filled.url);
  if (url === null) return { ok: false, fault: "url: comes out as no URL" };
  const headers: Record<string, string> = {};
  const room = roomFor(LONGEST_HEADERS, "all headers together");
  for (const [name, template] of Object.entries(job.headers)) {
    const value = fillText(template, facts, room(`headers.${name}`));
    // A line break in it would begin another header.
    if (!/^[\t\x20-\x7e]*$/.test(value)) {
      return { ok: false, fault: `headers.${name}: comes out with characters that are not visible ASCII` };
    }
    if (value.length > LONGEST_VALUE) return { ok: false, fault: `headers.${name}: comes out too long` };
    headers[name.toLowerCase()] = value;
  }
  const body = bodyOf(job, facts);
  if (body !== undefined && Buffer.byteLength(body.text) > LONGEST_BODY)
    return { ok: false, fault: "body: comes out too long" };
  if (body !== undefined) headers["content-type"] ??= body.type;
  return { ok: true, hop: { url, method: job.method, headers, body: body?.text, isTrusted: true } };
}

function bodyOf({ body, method }: HttpJob, facts: JobFacts): { text: string; type: string } | undefined {
  if (method === "GET" || method === "HEAD" || body === null) return undefined;
  if (body !== undefined && "text" in body) {
    return { text: fillText(body.text, facts, roomFor(LONGEST_BODY)("body.text")), type: "text/plain; charset=utf-8" };
  }
  const value = body === undefined ? facts.payload : fillJson(body.json, facts, roomFor(LONGEST_BODY)("body.json"));
  return { text: JSON.stringify(value), type: "application/json" };
}
