/** What a rule would do in a period, and what another tz database or another release would make of it. Epoch ms. */
import { compileRule } from "../compile.ts";
import { nextAfter } from "../next.ts";
import type { Rule } from "../rule.ts";
import type { ZoneSource } from "../zone-source.ts";

/** Instants in order; where a rule has more than anybody reads, the first of them. `fault`: it cannot be computed. */
export type Shadow = { readonly instants: readonly number[]; readonly fault?: string };

const MOST_INSTANTS = 100_000;

/** The instants of a rule after `from` and up to `until`. */
export function shadowOf(rule: Rule, zones: ZoneSource, from: number, until: number): Shadow {
  const compilation = compileRule(rule, zones);
  if (!compilation.ok) {
    const { field, found, message } = compilation.fault;
    return { instants: [], fault: `${field} ${JSON.stringify(found)}: ${message}` };
  }
  const instants: number[] = [];
  for (let at = nextAfter(compilation.rule, from); at !== null && at <= until; at = nextAfter(compilation.rule, at)) {
    instants.push(at);
    if (instants.length === MOST_INSTANTS) break;
  }
  return { instants };
}

export type Difference = {
  /** In order: an instant of before, and the one that stands in its place. Null: there is none. */
  readonly moves: readonly { readonly before: number | null; readonly after: number | null }[];
  /** Set where one of the two cannot be computed. */
  readonly fault?: { readonly before: string | null; readonly after: string | null };
};

/** What differs; undefined: nothing. Instants that both have have not moved, the others are paired with their nearest, in order. */
export function differenceOf(before: Shadow, after: Shadow): Difference | undefined {
  if (before.fault !== undefined || after.fault !== undefined) {
    if (before.fault === after.fault) return undefined;
    return { moves: [], fault: { before: before.fault ?? null, after: after.fault ?? null } };
  }
  const [earlier, later] = [new Set(before.instants), new Set(after.instants)];
  const gone = before.instants.filter((at) => !later.has(at));
  const come = after.instants.filter((at) => !earlier.has(at));
  if (gone.length + come.length === 0) return undefined;
  return { moves: paired(gone, come) };
}

/** Where the period begins between an instant and what becomes of it, one of the two has no counterpart. */
function paired(gone: readonly number[], come: readonly number[]): Difference["moves"] {
  const moves: { before: number | null; after: number | null }[] = [];
  const apart = (one: number | undefined, other: number | undefined) =>
    one === undefined || other === undefined ? Number.POSITIVE_INFINITY : Math.abs(one - other);
  for (let i = 0, k = 0; i < gone.length || k < come.length; ) {
    const [before, after] = [gone[i], come[k]];
    const distance = apart(before, after);
    const isBeforeAlone = after === undefined || apart(gone[i + 1], after) < distance;
    const isAfterAlone = before === undefined || (!isBeforeAlone && apart(before, come[k + 1]) < distance);
    moves.push({ before: isAfterAlone ? null : before!, after: isBeforeAlone ? null : after! });
    if (!isAfterAlone) i++;
    if (!isBeforeAlone) k++;
  }
  return moves;
}

/** Instants as their distances, equal ones counted: a month of a minutely rule is a few characters. */
export function packInstants(instants: readonly number[]): string {
  const parts: string[] = [];
  let last = 0;
  for (let k = 0; k < instants.length; ) {
    const step = instants[k]! - last;
    let times = 1;
    while (k + times < instants.length && instants[k + times]! - instants[k + times - 1]! === step) times += 1;
    parts.push(times === 1 ? String(step) : `${step}x${times}`);
    last = instants[k + times - 1]!;
    k += times;
  }
  return parts.join(" ");
}

/** Throws where the text is something else. */
export function unpackInstants(text: string): number[] {
  const instants: number[] = [];
  let last = 0;
  for (const part of text === "" ? [] : text.split(" ")) {
    const parts = /^(-?\d{1,16})(?:x(\d{1,6}))?$/.exec(part);
    if (parts === null) throw new Error(`"${part}" is no distance between instants`);
    for (let n = 0; n < Number(parts[2] ?? 1); n += 1) {
      last += Number(parts[1]);
      instants.push(last);
    }
  }
  return instants;
}
