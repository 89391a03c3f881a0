/** What `compileRule` makes of a rule: opaque to everybody outside this folder, and never changed once made. */
import type { CronFields } from "./cron/fields.ts";
import type { WallPattern } from "./cron/pattern.ts";
import type { Gap, Overlap } from "./rule.ts";
import type { Zone } from "./zone.ts";

export type CompiledCron = {
  readonly kind: "cron";
  readonly expression: string;
  readonly fields: CronFields;
  readonly pattern: WallPattern;
  readonly zone: Zone;
  /**
   * `shown`: minute or hour hold a `*`, so the rule follows the clock on the wall through its changes. `fixed`: every
   * matching time of the calendar is an appointment, and `gap` and `overlap` say what a clock change makes of it.
   */
  readonly timing: "shown" | "fixed";
  readonly gap: Gap;
  readonly overlap: Overlap;
  /** Whether the tenant chose `gap` or `overlap` though `shown` timing makes no use of them. */
  readonly hasIdleChoice: boolean;
  /** The last answer holds for every instant between its question and itself: bursts share rules. Epoch ms. */
  readonly memo: { after: number; next: number };
};

type CompiledInterval = { readonly kind: "interval"; readonly everyMs: number; readonly anchorAt: number };
/** `once` and `dates`; instants in order, each once. */
type CompiledDates = {
  readonly kind: "dates";
  readonly instants: readonly number[];
  /** Where they were written as local times: these (whole wall seconds), for whoever explains an instant. */
  readonly local?: { readonly zone: Zone; readonly walls: readonly number[] };
};
type CompiledAfterCompletion = { readonly kind: "afterCompletion"; readonly delayMs: number };
export type CompiledSingle = CompiledCron | CompiledInterval | CompiledDates | CompiledAfterCompletion;
export type CompiledRule = CompiledSingle | { readonly kind: "anyOf"; readonly rules: readonly CompiledSingle[] };

/** 0000-01-01T00:00:00Z and 9999-12-31T23:59:59.999Z: RFC 3339 writes no other instants. Epoch ms. */
export const FIRST_INSTANT = -62_167_219_200_000;
export const LAST_INSTANT = 253_402_300_799_999;
/**
 * 9999-12-01T00:00:00Z, in epoch ms: no schedule goes on after it, so that what is counted on from an instant (a window of a
 * day, a start deadline of thirty) still falls into the years that can be kept.
 */
export const LAST_NOMINAL = 253_399_622_400_000;
