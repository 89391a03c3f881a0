import { keepLogs, type LogKept, type LogPiece, type LogStore } from "../../authority/attempts/keep-log.ts";
import type { Authority } from "../../authority/authority.ts";
import type { Fence } from "../../domain/fence.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { inTime } from "../../kernel/in-time.ts";
import { createLoop } from "../../kernel/loop.ts";
import type { Service } from "../../kernel/service.ts";
import { type AttemptLog, createAttemptLog, NOTHING_KEPT } from "./attempt-log.ts";

/** A log that grows is stored this often, or when it has grown by so much. */
const EVERY_MS = 5_000;
const GROWN_BYTES = 65_536;
/** The longer an attempt lasts, the less often: a day of a line now and then is some hundred parts, not thousands. */
const PART_OF_AGE = 50;
/** How often it is looked whose turn it is. */
const LOOK_MS = 500;
const BATCH = 100;
/** After a failure. */
const RETRY_MS = 2_000;
/** What an attempt said is given up when it cannot be stored for so long after its end. */
const PATIENCE_MS = 120_000;
/** Ended attempts whose logs wait to be stored: so many, and so much of them together. */
const MOST_WAITING = 2_000;
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
/** A store that takes a call and does not answer is not waited for any longer: it holds up all other logs. */
const STORE_MS = 20_000;
/** How long the end of the process waits for logs. */
const LAST_MS = 5_000;

export type LogKeeper = Service & {
  open(of: { runId: Uuid; attempt: number; fence: Fence; secrets: () => KnownSecrets }): AttemptLog;
};

type Kept = {
  log: AttemptLog;
  openedMs: number;
  /** When it was last stored, or tried to be. */
  storedMs: number;
  endedMs: number | undefined;
  /** Not before this, after a failure. */
  retryMs: number;
};

/**
 * Stores what the attempts of this process say, many in one transaction, while they run. It is in nobody's way: what
 * cannot be stored is tried again, then given up and counted.
 */
export function createLogKeeper(authority: Authority, logs: LogStore): LogKeeper {
  const { clock, log, metrics } = authority;
  const all = new Set<Kept>();
  const ending = new AbortController();

  function isDue(one: Kept, nowMs: number): boolean {
    if (one.log.waitingBytes === 0 || nowMs < one.retryMs) return false;
    if (one.log.waitingBytes >= GROWN_BYTES || one.log.ended) return true;
    return nowMs - one.storedMs >= Math.max(EVERY_MS, (nowMs - one.openedMs) / PART_OF_AGE);
  }

  /** The newest of those that have ended and cannot be stored are waited for, for some time. */
  function forget(nowMs: number): void {
    const ended = [...all].filter((one) => one.log.ended);
    let waiting = ended.filter((one) => one.log.waitingBytes > 0).length;
    let waitingBytes = ended.reduce((sum, one) => sum + one.log.waitingBytes, 0);
    for (const one of ended) {
      one.endedMs ??= nowMs;
      const size = one.log.waitingBytes;
      if (size > 0) {
        const areTooMany = waiting > MOST_WAITING || waitingBytes > MOST_WAITING_BYTES;
        if (nowMs - one.endedMs < PATIENCE_MS && !areTooMany) continue;
        waiting--;
        waitingBytes -= size;
        metrics.attemptLogFailures.inc({ why: "given-up" });
        one.log.next();
        one.log.done("refused");
      }
      all.delete(one);
    }
  }

  /** What came of each; it is over in time, whatever the store does. */
  function store(pieces: readonly LogPiece[]): Promise<readonly LogKept[]> {
    const late = new Error("the store did not answer in time");
    return inTime(clock, { withinMs: STORE_MS, late, signal: ending.signal }, (over) =>
      keepLogs(authority, logs, pieces, over),
    );
  }

  async function keep(due: readonly Kept[], nowMs: number): Promise<boolean> {
    const pieces = due.map((one) => one.log.next()!);
    for (const one of due) one.storedMs = nowMs;
    const answers = await store(pieces);
    const retryMs = clock.monotonic() + RETRY_MS;
    let failed: unknown;
    for (const [i, answer] of answers.entries()) {
      if (answer.kind !== "failed") due[i]!.log.done(answer.kind === "kept" ? "kept" : "refused");
      else {
        failed = answer.error;
        due[i]!.retryMs = retryMs;
        metrics.attemptLogFailures.inc({ why: "not-stored" });
      }
    }
    if (failed !== undefined) log.warn({ reason: messageOf(failed) }, "logs of attempts could not be stored");
    return failed === undefined;
  }

  async function pass(isLast = false) {
    const nowMs = clock.monotonic();
    const due = [...all]
      .filter((one) => (isLast ? one.log.waitingBytes > 0 : isDue(one, nowMs)))
      // More than one pass can take: whoever has waited for longest is first.
      .toSorted((a, b) => a.storedMs - b.storedMs)
      .slice(0, BATCH);
    const isKept = due.length === 0 || (await keep(due, nowMs));
    forget(clock.monotonic());
    return { did: due.length, more: isKept && due.length > 0 };
  }

  const loop = createLoop({ name: "log-keeper", everyMs: LOOK_MS, idleMs: LOOK_MS, pass: () => pass() }, authority);

  return {
    name: "log-keeper",
    start: () => loop.start(),
    open({ runId, attempt, fence, secrets }) {
      const nowMs = clock.monotonic();
      const { limitBytes } = logs;
      if (limitBytes === 0) return NOTHING_KEPT;
      const one: Kept = {
        log: createAttemptLog(authority, { runId, attempt, fence, limitBytes, secrets }),
        openedMs: nowMs,
        storedMs: nowMs,
        endedMs: undefined,
        retryMs: nowMs,
      };
      all.add(one);
      return one.log;
    },
    async stop() {
      const timer = clock.after(LAST_MS, () => ending.abort(new Error("the process ends")));
      await loop.stop();
      while (!ending.signal.aborted && (await pass(true)).more);
      timer.cancel();
    },
  };
}
