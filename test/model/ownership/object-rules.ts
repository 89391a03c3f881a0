import { ScheduleReference } from "./births.ts";
import { type Effect, type EffectName, type Grant, type Run, SENDINGS, type StoredObject } from "./terms.ts";

/** What must be true of objects, in so many words: see reference.ts. */

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
/** How long a link in a message works. */
const LINK = 7 * DAY;

export class ObjectReference extends ScheduleReference {
  readonly objects: StoredObject[] = [];
  readonly effects: Effect[] = [];

  /** An attempt asks for a place for its bytes, and (if they arrive) says that they are there. */
  stage(grant: Grant, name: string, sha256: string | undefined): string {
    const { run, fence } = grant;
    if (!this.holds(run, fence)) return "stale-fence";
    if (run.leaseUntil <= this.now) return "lease-lapsed";
    const isUnused = ({ state }: StoredObject) => state === "granted" || state === "staged";
    let object = this.#sharing(run, fence, name).find(isUnused);
    if (object === undefined) {
      object = { ...NOTHING_YET, run, fence, name, grantedUntil: run.deadlineAt };
      this.objects.push(object);
    }
    if (sha256 === undefined) return "granted";
    Object.assign(object, { state: "staged", sha256 });
    return "granted, staged";
  }

  /** It becomes its run's result. */
  protected publish(object: StoredObject): void {
    Object.assign(object, { state: "referenced", referencedAt: this.now });
  }

  /** A message that tells of it keeps it for as long as its link works: a week after the last try there may be. */
  protected linkTo(object: StoredObject, effect: EffectName): void {
    const { maxElapsedMinutes, windowMinutes } = SENDINGS[effect];
    const until = this.now + LINK + Math.max(maxElapsedMinutes, windowMinutes) * MINUTE;
    this.#keepUntil(object, Math.ceil(until / SECOND) * SECOND);
  }

  /** A download link is given away. */
  pin(run: Run, forMs: number): boolean {
    const result = this.objects.find((one) => one.run === run && one.state === "referenced");
    if (result === undefined) return false;
    this.#keepUntil(result, this.now + forMs * 1000 + MINUTE);
    return true;
  }

  /** A week goes by for the links, not for the runs. */
  letLinksDie(): void {
    for (const one of this.objects) if (one.pinUntil !== undefined) one.pinUntil = this.now;
  }

  /** A month goes by for what is gone, not for the runs. */
  letMonthPass(): void {
    for (const one of this.objects.filter(({ state }) => state === "deleted")) {
      one.grantedUntil -= 30 * DAY;
      one.deletedAt! -= 30 * DAY;
      one.cleanAt! -= 30 * DAY;
    }
  }

  /** What nobody can publish any more; a result never is. */
  isOrphan(object: StoredObject): boolean {
    if (object.state !== "granted" && object.state !== "staged") return false;
    const { run, fence, name } = object;
    if (this.#sharing(run, fence, name).some((one) => one.state === "referenced")) return false;
    return !this.holds(run, fence) || object.grantedUntil + MINUTE <= this.now;
  }

  /** A result that was kept long enough, that nobody was promised, and that no effect may still need. */
  isExpired(object: StoredObject, keptMs: number): boolean {
    if (object.state !== "referenced" || object.referencedAt! + keptMs * 1000 > this.now) return false;
    if (object.pinUntil !== undefined && object.pinUntil > this.now) return false;
    const open = ["pending", "sending", "uncertain"];
    return this.effects.every((effect) => effect.object !== object || !open.includes(effect.state));
  }

  /** Answers those whose bytes are to go. */
  clean(objects: readonly StoredObject[], keptMs: number): StoredObject[] {
    const going = [...new Set(objects)].filter((one) => this.isOrphan(one) || this.isExpired(one, keptMs));
    for (const one of going) Object.assign(one, { state: "deleting", cleanAt: this.now });
    return going;
  }

  /** What is to be deleted now: for the first time, or once more because an upload could have arrived since. */
  going(): StoredObject[] {
    return this.objects.filter((one) => one.cleanAt !== undefined && one.cleanAt <= this.now);
  }

  isToBeForgotten({ state, deletedAt, grantedUntil }: StoredObject): boolean {
    return state === "deleted" && deletedAt! >= grantedUntil + 60 * MINUTE;
  }

  settleDeletion(object: StoredObject, removed: boolean): void {
    if (!this.going().includes(object)) return;
    if (this.isToBeForgotten(object)) {
      Object.assign(object, { state: "forgotten", cleanAt: undefined });
      return;
    }
    if (removed) {
      const quietAt = object.grantedUntil + 60 * MINUTE;
      const cleanAt = this.now < quietAt ? quietAt : this.now + 30 * DAY;
      Object.assign(object, { state: "deleted", deletedAt: this.now, cleanAt, cleanTries: 0 });
    } else {
      object.cleanTries += 1;
      const pause = Math.min(3_600_000, 10_000 * 2 ** (object.cleanTries - 1)) / 2;
      object.cleanAt = this.now + Math.max(5_000, pause) * 1000;
    }
  }

  protected holds(run: Run, fence: bigint): boolean {
    return run.state === "running" && run.fence === fence;
  }

  #keepUntil(object: StoredObject, until: number): void {
    object.pinUntil = Math.max(object.pinUntil ?? 0, until);
  }

  /** Objects under one key: an attempt may be given it again. */
  #sharing(run: Run, fence: bigint, name: string): StoredObject[] {
    return this.objects.filter((one) => one.run === run && one.fence === fence && one.name === name);
  }
}

const NOTHING_YET = {
  id: undefined,
  state: "granted",
  sha256: undefined,
  referencedAt: undefined,
  pinUntil: undefined,
  deletedAt: undefined,
  cleanAt: undefined,
  cleanTries: 0,
} as const;
