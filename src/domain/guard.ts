import { createHash } from "node:crypto";
import type { Uuid } from "../kernel/ids.ts";
import type { Overlap } from "./definition.ts";

/**
 * A guard is the right to be the open run of a schedule (slot 0), or one of its n (`allow` with a limit). It is a
 * unique column, so two holders of one slot cannot exist. Runs that compete with nobody hold their own id.
 */

/** How many runs of a schedule may be open side by side. */
export function slotsOf(overlap: Overlap): number {
  if (overlap.policy !== "allow") return 1;
  return overlap.limit ?? Number.POSITIVE_INFINITY;
}

/** The guard of slot `k`: the schedule's own id for slot 0, derived from it for the others. */
export function slotGuard(scheduleId: Uuid, k: number): Uuid {
  if (k === 0) return scheduleId;
  const hash = createHash("sha256").update(`${scheduleId}\nslot\n${k}`).digest();
  hash[6] = 0x80 | (hash[6]! & 0x0f);
  hash[8] = 0x80 | (hash[8]! & 0x3f);
  const hex = hash.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** Guards of a schedule that nobody holds, lowest slot first. */
export function freeGuards(scheduleId: Uuid, slots: number, held: ReadonlySet<Uuid>): Uuid[] {
  const free: Uuid[] = [];
  for (let k = 0; k < slots; k++) {
    const guard = slotGuard(scheduleId, k);
    if (!held.has(guard)) free.push(guard);
  }
  return free;
}
