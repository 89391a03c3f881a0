import type { Json, Payload } from "../definition.ts";

/**
 * Placeholders in what a job sends or is started with: `{{payload.customer.id}}`, `{{run.id}}`. Names and nothing else, no
 * logic: a tenant's text is filled in, never run. Secrets of a payload come opened, so they need not stand in a definition.
 */
export type JobFacts = {
  run: {
    id: string;
    scheduleId: string | null;
    /** RFC 3339 in UTC. */
    scheduledAt: string;
    dueAt: string;
    attempt: number;
    fence: string;
  };
  payload: Payload;
};

/** With blanks around the name, which `trim` takes off: two patterns for them side by side would share them out in every way there is. */
const BRACES = /\{\{([^{}]*)\}\}/g;
const ONLY = /^\{\{([^{}]*)\}\}$/;
const RUN_NAMES = ["run.id", "run.scheduleId", "run.scheduledAt", "run.dueAt", "run.attempt", "run.fence"];
export const JOB_PLACEHOLDERS = [...RUN_NAMES, "payload", "payload.<field>…"] as const;

/** Of one definition: each may stand for a whole payload. */
const MOST_PLACEHOLDERS = 100;

const isKnown = (name: string) => RUN_NAMES.includes(name) || name === "payload" || /^payload(\.[^.\s]+)+$/.test(name);

/** Whatever stands in two braces, in the order of the text. One that is not closed is a text like any other. */
export function placeholdersIn(text: string): { name: string; begin: number; end: number }[] {
  return [...text.matchAll(BRACES)].map(({ 0: whole, 1: inner, index }) => ({
    name: inner!.trim(),
    begin: index,
    end: index + whole.length,
  }));
}

/** Placeholders in `text` that mean nothing. */
export function unknownJobPlaceholders(text: string): string[] {
  return placeholdersIn(text).flatMap(({ name }) => (isKnown(name) ? [] : [name]));
}

/** The texts of a JSON value, in which placeholders may stand. Names of fields are none. */
export function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value !== "object" || value === null ? [] : Object.values(value).flatMap(textsOf);
}

/** Checked for each kind of job over all of its fields. */
export const hasFewPlaceholders = (job: unknown) =>
  textsOf(job).reduce((sum, text) => sum + placeholdersIn(text).length, 0) <= MOST_PLACEHOLDERS;
export const FEW_PLACEHOLDERS = `at most ${MOST_PLACEHOLDERS} placeholders in one job`;

/** What was filled in became too long. Names the place, and nothing of what was filled in. */
export class FilledTooLong extends Error {}

/** Takes room for a piece, before it is added. @throws FilledTooLong */
export type Room = (piece: string) => void;

/** Room for so many bytes, which all fields that ask for it share. What does not fit is never put together. */
export function roomFor(mostBytes: number, shared?: string): (field: string) => Room {
  let used = 0;
  return (field) => (piece) => {
    used += Buffer.byteLength(piece);
    if (used > mostBytes) {
      throw new FilledTooLong(`${field}: as filled in, ${shared ?? "it"} would have more than ${mostBytes} bytes`);
    }
  };
}

/** Texts as they are, anything else as JSON; `encode` may make what is filled in safe for where it goes (a URL, say). */
export function fillText(text: string, facts: JobFacts, room: Room, encode = (value: string) => value): string {
  let filled = "";
  let at = 0;
  const add = (piece: string) => {
    room(piece);
    filled += piece;
  };
  for (const { name, begin, end } of placeholdersIn(text)) {
    if (!isKnown(name)) continue;
    add(text.slice(at, begin));
    add(encode(foundFor(facts, name).text));
    at = end;
  }
  add(text.slice(at));
  return filled;
}

/**
 * The same in every text of a JSON value. A text that is one placeholder and nothing else becomes what it stands for, of
 * whatever type. Room is taken for what it will be as JSON.
 */
export function fillJson(value: Json, facts: JobFacts, room: Room): Json {
  if (typeof value === "string") {
    const name = ONLY.exec(value)?.[1]?.trim();
    if (name === undefined || !isKnown(name)) {
      return fillText(value, facts, (piece) => room(JSON.stringify(piece).slice(1, -1)));
    }
    const { found, json } = foundFor(facts, name);
    room(json);
    return found;
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => fillJson(one, facts, room));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillJson(one, facts, room)]));
}

type Found = { found: Json; json: string; text: string };
/** What was found for an attempt: a payload is written as JSON once, however often it is asked for. */
const known = new WeakMap<JobFacts, Map<string, Found>>();

function foundFor(facts: JobFacts, name: string): Found {
  const names = known.get(facts) ?? new Map<string, Found>();
  known.set(facts, names);
  const before = names.get(name);
  if (before !== undefined) return before;
  const found = find(facts, name) ?? null;
  const json = JSON.stringify(found);
  const text = typeof found === "string" ? found : found === null ? "" : json;
  const one = { found, json, text };
  names.set(name, one);
  return one;
}

function find(facts: JobFacts, name: string): Json | undefined {
  return name
    .split(".")
    .reduce<Json | undefined>(
      (at, part) =>
        typeof at === "object" && at !== null && Object.hasOwn(at, part)
          ? (at as Record<string, Json>)[part]
          : undefined,
      facts as unknown as Json,
    );
}
