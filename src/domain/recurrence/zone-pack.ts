/** Packs a zoneinfo directory's files into the one text that `zoneSourceFromBytes` opens. */
import { DAY_SECONDS, dateOf } from "./civil.ts";
import { parseTzRule, type Transition, type TzRule, transitionsOfYear } from "./posix-tz.ts";
import { readTzif, type TzifZone } from "./tzif.ts";
import { PACK_HEADER } from "./zone-source.ts";

/** `files`: TZif bytes by zone name. Zones of identical rules are written once; the rest are names for them. */
export function packZones(version: string, files: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const firstOf = new Map<string, string>();
  const lines: string[] = [];
  const names: string[] = [];
  for (const name of [...files.keys()].sort()) {
    const body = packZone(readTzif(files.get(name)!));
    const same = firstOf.get(body);
    if (same !== undefined) names.push(`=${name}|${same}`);
    else {
      firstOf.set(body, name);
      lines.push(`${name}|${body}`);
    }
  }
  return new TextEncoder().encode(`${[PACK_HEADER + version, ...lines, ...names].join("\n")}\n`);
}

function packZone(zone: TzifZone): string {
  const offsets = [zone.firstOffset];
  let before = 0;
  const changes = withoutRepeats(zone.firstOffset, withoutTail(zone)).map(({ at, offset }) => {
    if (!offsets.includes(offset)) offsets.push(offset);
    const text = `${offsets.indexOf(offset).toString(36)}.${(at - before).toString(36)}`;
    before = at;
    return text;
  });
  return [zone.footer, offsets.join(","), changes.join(" ")].join("|");
}

/** Leaves out the listed transitions at the end that the footer yields by itself (files list them up to 2037). */
function withoutTail(zone: TzifZone): readonly Transition[] {
  const rule = parseTzRule(zone.footer);
  const listed = withoutSentinel(zone);
  const last = listed.at(-1);
  if (rule.summer === undefined || last === undefined) return listed;
  const yielded = yieldedBetween(rule, listed[0]!.at - 1, last.at);
  let shared = 0;
  while (shared < listed.length && shared < yielded.length && same(listed.at(-1 - shared)!, yielded.at(-1 - shared)!)) {
    shared += 1;
  }
  // The footer takes over after the last kept transition, so one of the shared stays to mark the place.
  return listed.slice(0, Math.min(listed.length - shared + 1, listed.length));
}

/** Files made for old readers end in a transition of 2038 that changes nothing; drop it where the footer agrees. */
function withoutSentinel({ firstOffset, transitions, footer }: TzifZone): readonly Transition[] {
  const last = transitions.at(-1);
  if (last === undefined) return transitions;
  const before = transitions.at(-2) ?? { at: Number.NEGATIVE_INFINITY, offset: firstOffset };
  const isEmpty = before.offset === last.offset && yieldedBetween(parseTzRule(footer), before.at, last.at).length === 0;
  return isEmpty ? transitions.slice(0, -1) : transitions;
}

/** Leaves out changes of name only. The last stays, whatever it is: the footer begins where it ends. */
function withoutRepeats(firstOffset: number, transitions: readonly Transition[]): readonly Transition[] {
  return transitions.filter(
    ({ offset }, k) => k === transitions.length - 1 || offset !== (transitions[k - 1]?.offset ?? firstOffset),
  );
}

/** What the footer alone would do after `from` and up to `to` (epoch seconds). */
function yieldedBetween(rule: TzRule, from: number, to: number): readonly Transition[] {
  if (rule.summer === undefined || !Number.isFinite(from)) return [];
  const yielded: Transition[] = [];
  for (let year = yearOf(from); year <= yearOf(to); year += 1) yielded.push(...transitionsOfYear(rule, year));
  return yielded.filter(({ at }) => at > from && at <= to);
}

function same(a: Transition, b: Transition): boolean {
  return a.at === b.at && a.offset === b.offset;
}

function yearOf(at: number): number {
  return dateOf(Math.floor(at / DAY_SECONDS)).year;
}
