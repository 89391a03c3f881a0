import type { Clock, Timer } from "../../kernel/clock.ts";
import { inTime } from "../../kernel/in-time.ts";
import { unlessAborted } from "../../kernel/unless-aborted.ts";
import { transientFailure } from "../outcome.ts";
import { noConnection, unavailable } from "./failures.ts";

/** One connection to a broker, shared by all deliveries to it. */
export type BrokerConnection = {
  readonly alive: boolean;
  /** At once; what is under way on it fails. */
  close(): void;
};

export type BrokersOptions = {
  clock: Clock;
  /** So many connections are kept while nobody uses them; the one that has waited longest goes first. */
  mostIdle?: number;
  idleMs?: number;
  /** A connection this old is used no more: names, certificates and what a tenant may reach change. */
  longestMs?: number;
};

export type Use<C, T> = {
  /** Whoever has the same key shares a connection. */
  key: string;
  open(signal: AbortSignal): Promise<C>;
  work(connection: C): Promise<T>;
  timeoutMs: number;
  signal: AbortSignal;
};

export type Brokers<C extends BrokerConnection> = {
  use<T>(use: Use<C, T>): Promise<T>;
  readonly open: number;
  close(): void;
};

type Held<C> = {
  key: string;
  users: number;
  openedMs: number;
  opened: Promise<C>;
  given: AbortController;
  timer?: Timer;
  connection?: C;
};

const MOST_SILENT = 1_000;

/**
 * Connections to tenants' brokers: one each, opened when it is needed, closed when it was idle. Who uses one waits at most
 * its own `timeoutMs`, connecting included. A broker that kept silent is asked by one delivery at a time until it answers:
 * the others fail at once, rather than hold slots that other tenants' runs could have.
 */
export function createBrokers<C extends BrokerConnection>(options: BrokersOptions): Brokers<C> {
  const { clock, mostIdle = 50, idleMs = 30_000, longestMs = 60_000 } = options;
  /** The ones in use or idle; the idle ones in the order in which they became that. */
  const held = new Map<string, Held<C>>();
  const all = new Set<Held<C>>();
  const silent = new Map<string, { asked: boolean }>();
  let closed = false;

  function take(key: string, open: Use<C, unknown>["open"]): Held<C> {
    let one = held.get(key);
    const spent =
      one !== undefined && (one.connection?.alive === false || clock.monotonic() - one.openedMs > longestMs);
    if (one !== undefined && spent) retire(one);
    if (one === undefined || spent) {
      const given = new AbortController();
      const fresh: Held<C> = { key, users: 0, openedMs: clock.monotonic(), given, opened: open(given.signal) };
      one = fresh;
      all.add(fresh);
      fresh.opened.then(
        (connection) => {
          fresh.connection = connection;
          if (given.signal.aborted) connection.close();
        },
        () => retire(fresh),
      );
    }
    // At the end of the line of those that may go.
    held.delete(key);
    held.set(key, one);
    one.timer?.cancel();
    one.users++;
    return one;
  }

  function giveBack(one: Held<C>): void {
    one.users--;
    if (one.users > 0) return;
    if (held.get(one.key) !== one || one.connection?.alive === false) {
      retire(one);
      return;
    }
    one.timer = clock.after(idleMs, () => retire(one));
    const idle = [...held.values()].filter((each) => each.users === 0);
    for (const each of idle.slice(0, Math.max(0, idle.length - mostIdle))) retire(each);
  }

  /** Nobody new gets it; it is closed when the last one who has it is done. */
  function retire(one: Held<C>): void {
    if (held.get(one.key) === one) held.delete(one.key);
    if (one.users === 0) end(one);
  }

  function end(one: Held<C>): void {
    one.timer?.cancel();
    one.given.abort();
    one.connection?.close();
    all.delete(one);
  }

  function keptSilent(key: string): void {
    silent.set(key, { asked: false });
    if (silent.size > MOST_SILENT) silent.delete(silent.keys().next().value!);
  }

  return {
    async use({ key, open, work, timeoutMs, signal }) {
      signal.throwIfAborted();
      if (closed) throw unavailable(new Error("this worker is stopping"));
      const silence = silent.get(key);
      if (silence?.asked === true) throw stillSilent(timeoutMs);
      if (silence !== undefined) silence.asked = true;
      const one = take(key, open);
      try {
        const done = await within(clock, timeoutMs, signal, async (over) => {
          const connection = await one.opened.catch((error: unknown) => {
            throw noConnection(error);
          });
          // Who was told that there was no connection, or to stop, must not say anything on one that came after that.
          over.throwIfAborted();
          return work(connection);
        });
        silent.delete(key);
        return done;
      } catch (error) {
        if (error === TOO_LATE) {
          retire(one);
          keptSilent(key);
          throw tooLate(timeoutMs, one.connection !== undefined);
        }
        if (isConnectTimeout(error)) {
          keptSilent(key);
          throw error;
        }
        // It has said something, if only no; a word of ours (an abort) says nothing of it.
        if (!signal.aborted) silent.delete(key);
        else if (silence !== undefined) silence.asked = false;
        throw error;
      } finally {
        giveBack(one);
      }
    },
    get open() {
      return all.size;
    },
    close() {
      closed = true;
      held.clear();
      for (const one of [...all]) end(one);
    },
  };
}

const TOO_LATE = Symbol("too late");

/** Whoever dials has a patience of its own. */
const isConnectTimeout = (error: unknown) => (error as { cause?: { code?: unknown } }).cause?.code === "ETIMEDOUT";

/** Rejects with TOO_LATE or the signal's reason, whatever the work does. */
function within<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  return inTime(clock, { withinMs: timeoutMs, late: TOO_LATE, signal }, (over) =>
    unlessAborted(over, () => work(over)),
  );
}

function tooLate(timeoutMs: number, connected: boolean) {
  const message = connected
    ? `the broker has not answered within ${timeoutMs} ms; the message may have arrived`
    : `there was no connection to the broker within ${timeoutMs} ms`;
  return transientFailure("broker-timeout", message);
}

function stillSilent(retryAfterMs: number) {
  const message = "the broker has not answered lately; until it does, one delivery at a time is tried";
  return transientFailure("broker-unavailable", message, { retryAfterMs });
}
