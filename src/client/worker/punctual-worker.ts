import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { createHttp } from "../http.ts";
import { runAttempt } from "./attempt.ts";
import { type LeaseTerms, type WorkerCalls, workerCallsOf } from "./calls.ts";
import { systemWorkerClock, type WorkerClock } from "./clock.ts";
import { createHeldAttempts, type HeldAttempts } from "./held.ts";
import { insist, pauseMs } from "./insist.ts";
import type { WorkerJob } from "./job.ts";

export type PunctualWorkerOptions = {
  /** Where the API is. */
  url: string;
  /** An API key of role `worker`. */
  key: string;
  /** What this worker can do, by `name@version`. */
  jobs: Readonly<Record<string, WorkerJob>>;
  /** How many runs at once. Default 1. */
  concurrency?: number;
  /** What it calls itself, one name for each process. Default: host, process and chance. */
  name?: string;
  /** Its own version, for people who look at workers. */
  version?: string;
  /** How long running attempts may go on when it stops (ms). Default 25,000. */
  graceMs?: number;
  /** How long one poll waits for work (ms). Default 20,000. */
  waitMs?: number;
  /** Hears of what went wrong. Default: standard error does. */
  log?(message: string, fields: Record<string, unknown>): void;
  clock?: WorkerClock;
};

/** Handlers that were told to stop have so long to do so. */
const ABORT_GRACE_MS = 5_000;
/** Before the first answer has told. */
const FIRST_TERMS: LeaseTerms = { ttlMs: 60_000, heartbeatMs: 10_000, marginMs: 5_000 };
/** A claim names so many hints and slots at most. */
const MOST_SLOTS = 100;

/** Runs remote jobs in this process: it asks for work, holds it by heartbeats, and says how it ended. */
export class PunctualWorker {
  readonly name: string;
  readonly #options: PunctualWorkerOptions;
  readonly #clock: WorkerClock;
  readonly #calls: WorkerCalls;
  readonly #held: HeldAttempts;
  readonly #jobs: readonly string[];
  readonly #concurrency: number;
  /** No more work is asked for; running attempts are told to stop; nobody waits for answers; heartbeats end. */
  readonly #stopping = new AbortController();
  readonly #ending = new AbortController();
  readonly #over = new AbortController();
  #terms = FIRST_TERMS;
  #working: Promise<void> | undefined;
  #beating: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: PunctualWorkerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemWorkerClock;
    this.#calls = workerCallsOf(
      createHttp({ url: options.url, key: options.key, sleep: (ms) => this.#clock.sleep(ms) }),
    );
    this.#jobs = Object.keys(options.jobs);
    this.#concurrency = options.concurrency ?? 1;
    this.name = options.name ?? nameOf(hostname());
    this.#held = createHeldAttempts({
      calls: this.#calls,
      clock: this.#clock,
      worker: this.name,
      terms: () => this.#terms,
      log: (message, fields) => this.#log(message, fields),
    });
  }

  /** How many attempts it is at work on; what it has detached is not its own any more. */
  get running(): number {
    return this.#held.size;
  }

  start(): void {
    this.#beating ??= this.#held.beat(this.#over.signal);
    this.#working ??= this.#work();
  }

  /** Asks for no more work, lets running attempts end within the grace, and gives the others back. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    await this.#emptyWithin(this.#options.graceMs ?? 25_000);
    for (const attempt of this.#held.all()) attempt.stop.abort("shutdown");
    await this.#emptyWithin(ABORT_GRACE_MS);
    const left = this.#held.all().length;
    if (left > 0) this.#log("handlers did not stop; their leases will end", { attempts: left });
    this.#ending.abort();
    this.#over.abort();
    await this.#beating;
  }

  async #emptyWithin(ms: number): Promise<void> {
    const enough = new AbortController();
    const timer = this.#clock.sleep(ms, enough.signal).then(() => enough.abort());
    while (this.#held.all().length > 0 && !enough.signal.aborted) await this.#held.change(enough.signal);
    enough.abort();
    await timer;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failed = 0; !signal.aborted; ) {
      const slots = Math.min(MOST_SLOTS, this.#concurrency - this.#held.size);
      if (slots <= 0) {
        await this.#held.change(signal);
        continue;
      }
      try {
        await this.#takeWork(slots, signal);
        failed = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.#log("no work could be asked for", { reason: String(error) });
        await this.#clock.sleep(pauseMs(++failed, error, this.#clock), signal);
      }
    }
  }

  async #takeWork(slots: number, signal: AbortSignal): Promise<void> {
    const { waitMs, version } = this.#options;
    const worker = this.name;
    const poll = { worker, jobs: this.#jobs, slots, concurrency: this.#concurrency };
    const more = { ...(version === undefined ? {} : { version }), ...(waitMs === undefined ? {} : { waitMs }) };
    const { hints, terms } = await this.#calls.poll({ ...poll, ...more }, signal);
    this.#terms = terms;
    if (hints.length === 0 || signal.aborted) return;

    const claim = { worker, claimId: randomUUID(), hints, slots };
    const sentMs = this.#clock.monotonic();
    // Granted unheard, a run would wait for the end of its lease: as long as that can be trusted, the same claim is sent again.
    const until = AbortSignal.any([signal, AbortSignal.timeout(terms.ttlMs - terms.marginMs)]);
    const { grants } = await insist(this.#clock, until, () => this.#calls.claim(claim));
    for (const grant of grants) {
      const attempt = this.#held.hold(grant, sentMs);
      if (signal.aborted) attempt.stop.abort("shutdown");
      void this.#run(attempt);
    }
  }

  async #run(attempt: ReturnType<HeldAttempts["hold"]>): Promise<void> {
    const { name, version } = attempt.grant.job;
    const tools = {
      calls: this.#calls,
      clock: this.#clock,
      worker: this.name,
      held: this.#held,
      ending: this.#ending.signal,
      log: (message: string, fields: Record<string, unknown>) => this.#log(message, fields),
    };
    await runAttempt(tools, attempt, this.#options.jobs[`${name}@${version}`]);
    this.#held.letGo(attempt);
  }

  #log(message: string, fields: Record<string, unknown>): void {
    const { log = (text, more) => console.error(text, more) } = this.#options;
    log(message, { worker: this.name, ...fields });
  }
}

/** Hosts are called what they like; workers begin with a letter or a digit. */
export function nameOf(host: string): string {
  const sayable = host.replaceAll(/[^\w.-]/g, "-").replace(/^[_.-]+/, "");
  return [sayable.slice(0, 60), randomUUID().slice(0, 8)].filter(Boolean).join("-");
}
