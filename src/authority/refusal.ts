import { PunctualError } from "../kernel/errors.ts";
import type { Transaction } from "../store/database.ts";
import type { Authority } from "./authority.ts";

/** Rolls a transaction back with an answer: a refused request leaves nothing behind, no key and no row. */
class Refusal<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super("refused");
    this.answer = answer;
  }
}

/** What was to be decided is moving in another transaction: look again in a new one. */
class LookAgain extends Error {
  readonly wait: Wait | undefined;
  constructor(wait: Wait | undefined) {
    super("look again");
    this.wait = wait;
  }
}

/** Waits for what is in the way, in a transaction that holds nothing else. */
type Wait = (tx: Transaction) => Promise<void>;

/** Thrown to roll back with an answer, or to look again: nothing has gone wrong. */
export function isNoFault(error: unknown): boolean {
  return error instanceof Refusal || error instanceof LookAgain;
}

export function refuse<T>(answer: T): never {
  throw new Refusal(answer);
}

/** `wait`: for what; without it, for a moment. */
export function lookAgain(wait?: Wait): never {
  throw new LookAgain(wait);
}

const TRIES = 50;

/** A transaction that may refuse (answer, rolled back) or ask to look again (a new transaction, a moment later). */
export async function transactOrRefuse<T>(
  authority: Authority,
  verb: string,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await authority.transact(verb, work);
    } catch (error) {
      if (error instanceof Refusal) return error.answer as T;
      if (!(error instanceof LookAgain)) throw error;
      if (tries >= TRIES) {
        throw new PunctualError("busy", "the schedule's runs are changing all the time; try again", {
          actor: "caller",
          retryable: true,
        });
      }
      if (error.wait !== undefined) await authority.transact(verb, error.wait);
      else await authority.clock.sleep(Math.min(100, 2 * tries));
    }
  }
}
