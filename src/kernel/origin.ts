import type { Uuid } from "./ids.ts";

/** Where a change comes from: one call to the API. What loops and commands change has no origin; its actor says who. */
export type Origin = {
  requestId: string;
  /** The caller's address, as far as proxies are trusted. */
  address: string | null;
  /** The API key of the call; null for a caller without one. */
  keyId: Uuid | null;
  /** Whose credential it came with; null for a caller without one. What it changes in another tenant, an admin did for that one. */
  homeTenantId: Uuid | null;
};
