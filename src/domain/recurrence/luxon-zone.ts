import { Zone as LuxonZone } from "luxon";
import { offsetAt, type Zone } from "./zone.ts";

/**
 * A pinned zone for luxon, which may format an instant with it. It must never be asked to resolve a local time: its answer
 * there depends on the season in which the process started.
 */
export class PinnedZone extends LuxonZone {
  readonly #zone: Zone;

  constructor(zone: Zone) {
    super();
    this.#zone = zone;
  }

  override get type(): string {
    return "pinned";
  }

  override get name(): string {
    return this.#zone.name;
  }

  override get isUniversal(): boolean {
    return false;
  }

  override get isValid(): true {
    return true;
  }

  override offsetName(at: number): string {
    return this.formatOffset(at, "short");
  }

  override formatOffset(at: number, format: "narrow" | "short" | "techie"): string {
    const minutes = Math.abs(this.offset(at));
    const sign = this.offset(at) < 0 ? "-" : "+";
    const [hour, minute] = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0"));
    if (format === "techie") return `${sign}${hour}${minute}`;
    return format === "narrow" && minute === "00" ? `${sign}${Number(hour)}` : `${sign}${hour}:${minute}`;
  }

  /** Minutes east of UTC; luxon and RFC 3339 know no seconds (a few zones had them before 1972). */
  override offset(at: number): number {
    return Math.round(offsetAt(this.#zone, Math.floor(at / 1000)) / 60);
  }

  override equals(other: LuxonZone): boolean {
    return other instanceof PinnedZone && other.#zone === this.#zone;
  }
}
