import type { Instant } from "../kernel/clock.ts";

export const KEY_STATES = ["active", "expiring", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** Longest a rotated key may go on beside the one that replaces it. */
export const LONGEST_OVERLAP_MS = 30 * 86_400_000;
export const DEFAULT_OVERLAP_MS = 86_400_000;

/** A key whose end is so near that whoever uses it should know. */
const SOON_MS = 7 * 86_400_000;

type KeyFacts = {
  readonly createdAt: Instant;
  readonly expiresAt: Instant | null;
  readonly revokedAt: Instant | null;
  readonly replacedBy: unknown;
};

/** How a key stands. `expiring`: it has been replaced, or has a week left. */
export function keyStateOf(key: KeyFacts, nowAt: Instant): KeyState {
  if (key.revokedAt !== null) return "revoked";
  if (key.expiresAt === null) return "active";
  if (key.expiresAt <= nowAt) return "expired";
  return key.replacedBy !== null || key.expiresAt - nowAt <= SOON_MS ? "expiring" : "active";
}

export type Rotation =
  | { readonly kind: "rotate"; readonly oldUntilAt: Instant; readonly newExpiresAt: Instant | null }
  /** Only a live key that nothing has replaced yet is rotated: two successors would be one that nobody looks after. */
  | { readonly kind: "not-current"; readonly why: "revoked" | "expired" | "replaced" };

/** The new key lives as long as the old one was made for; the old one ends after the overlap, or when it would have anyway. */
export function decideRotation(key: KeyFacts, overlapMs: number, nowAt: Instant): Rotation {
  const state = keyStateOf(key, nowAt);
  if (state === "revoked" || state === "expired") return { kind: "not-current", why: state };
  if (key.replacedBy !== null) return { kind: "not-current", why: "replaced" };
  return {
    kind: "rotate",
    oldUntilAt: Math.min(key.expiresAt ?? Number.POSITIVE_INFINITY, nowAt + overlapMs),
    newExpiresAt: key.expiresAt === null ? null : nowAt + (key.expiresAt - key.createdAt),
  };
}
