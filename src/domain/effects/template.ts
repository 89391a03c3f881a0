import { z } from "zod";
import { placeholdersIn } from "../jobs/template.ts";
import type { EffectFacts } from "./facts.ts";

/**
 * Placeholders in what an effect says: `{{schedule.name}}`. Names and nothing else, no logic: a tenant's text is filled
 * in, never run.
 */
type Placeholder = (facts: EffectFacts, resultUrl: string | null) => string;

const shown = (at: number) => new Date(Math.floor(at)).toISOString().replace(/\.\d+Z$/, "Z");

const PLACEHOLDERS: Readonly<Record<string, Placeholder>> = {
  "schedule.id": (facts) => facts.schedule?.id ?? "",
  "schedule.name": (facts) => facts.schedule?.name ?? "",
  "job.name": (facts) => facts.job,
  "run.id": (facts) => facts.run.id,
  "run.scheduledAt": (facts) => shown(facts.run.scheduledAt),
  "run.finishedAt": (facts) => shown(facts.run.finishedAt),
  "result.url": (_facts, url) => url ?? "",
  "result.mediaType": (facts) => facts.result?.mediaType ?? "",
  "result.sha256": (facts) => facts.result?.sha256 ?? "",
  "result.size": (facts) => String(facts.result?.size ?? ""),
};

export const PLACEHOLDER_NAMES: readonly string[] = Object.keys(PLACEHOLDERS);

const MOST_PLACEHOLDERS = 100;

/** Why a text is no template. */
function faultOf(text: string): string | undefined {
  const found = placeholdersIn(text);
  if (found.length > MOST_PLACEHOLDERS) return `at most ${MOST_PLACEHOLDERS} placeholders`;
  return found.every(({ name }) => Object.hasOwn(PLACEHOLDERS, name))
    ? undefined
    : `placeholders are {{${PLACEHOLDER_NAMES.join("}}, {{")}}}`;
}

export function fillIn(
  text: string,
  facts: EffectFacts,
  resultUrl: string | null,
  encode = (value: string) => value,
): string {
  let filled = "";
  let at = 0;
  for (const { name, begin, end } of placeholdersIn(text)) {
    if (!Object.hasOwn(PLACEHOLDERS, name)) continue;
    filled += text.slice(at, begin) + encode(PLACEHOLDERS[name]!(facts, resultUrl));
    at = end;
  }
  return filled + text.slice(at);
}

/** For a place in HTML, in text or within quotes: what is filled in can add no markup. */
export const fillInHtml = (html: string, facts: EffectFacts, resultUrl: string | null): string =>
  fillIn(html, facts, resultUrl, escaped);

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escaped = (text: string) => text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char]!);

/** Text with placeholders that mean something. A text that is too long is not looked at. */
export const placeholderText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max, { abort: true })
    .refine((text) => faultOf(text) === undefined, { error: ({ input }) => faultOf(input as string) });

export const EMAIL_TEXT = "{{job.name}} of {{run.scheduledAt}} has succeeded.\n\n{{result.url}}\n";
export const EMAIL_NAME = /^[a-z0-9][a-z0-9-]{0,39}$/;
