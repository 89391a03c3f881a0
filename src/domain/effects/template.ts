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

const BRACES = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** Placeholders in `text` that mean nothing. */
export function unknownPlaceholders(text: string): string[] {
  return [...text.matchAll(BRACES)].map(([, name]) => name!).filter((name) => !Object.hasOwn(PLACEHOLDERS, name));
}

export function fillIn(text: string, facts: EffectFacts, resultUrl: string | null): string {
  return text.replaceAll(BRACES, (whole, name: string) =>
    Object.hasOwn(PLACEHOLDERS, name) ? PLACEHOLDERS[name]!(facts, resultUrl) : whole,
  );
}
