import { OF_HISTORY } from "./history.ts";
import type { Invariant } from "./invariant.ts";
import { OF_OPEN_WORK } from "./open-work.ts";

const ALL = [...OF_OPEN_WORK, ...OF_HISTORY] as const;

export type InvariantId = (typeof ALL)[number]["id"];

/** All that are one query each; chains (chains.ts) and guards (guards.ts) take more. */
export const INVARIANTS: readonly Invariant<InvariantId>[] = ALL;
