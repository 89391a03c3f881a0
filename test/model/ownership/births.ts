import type { Policy, Run, Schedule, Tenant } from "./terms.ts";

/** What must be true of schedules and the births of their runs, in so many words: see reference.ts. */

const SECOND = 1_000_000;
const WAITING = ["blocked", "queued", "retrying"];
export const isOpen = (run: Run) => run.state === "running" || WAITING.includes(run.state);
const slotsOf = ({ overlap }: Policy) =>
  overlap === "allow" ? Number.POSITIVE_INFINITY : overlap.startsWith("allow ") ? Number(overlap.slice(6)) : 1;

export class ScheduleReference {
  now: number;
  readonly tenants: readonly Tenant[];
  readonly schedules: Schedule[] = [];
  readonly runs: Run[] = [];

  constructor(now: number, tenants: readonly Tenant[]) {
    this.now = now;
    this.tenants = tenants;
  }

  openOf(schedule: Schedule): Run[] {
    return this.runs.filter((run) => run.schedule === schedule && isOpen(run)).sort(byAge);
  }

  create(tenant: Tenant, policy: Policy): Schedule {
    const nextAt = instantAfter(policy, this.now);
    const schedule: Schedule = {
      id: undefined,
      tenant,
      policy,
      revision: 1,
      status: "active",
      nextAt,
      settledAt: 0,
    };
    this.schedules.push(schedule);
    return schedule;
  }

  materialize(schedule: Schedule): void {
    if (schedule.status !== "active") return;
    const due: number[] = [];
    for (; schedule.nextAt <= this.now; schedule.nextAt = instantAfter(schedule.policy, schedule.nextAt))
      due.push(schedule.nextAt);
    if (due.length > 0) schedule.settledAt = due.at(-1)!;
    this.#bear(
      schedule,
      due.map((at) => ({ at, manual: false })),
    );
  }

  /** What falls into a pause is owed until the resume; if none comes, it never runs. */
  #letGoOfPause(schedule: Schedule): void {
    for (; schedule.nextAt <= this.now; schedule.nextAt = instantAfter(schedule.policy, schedule.nextAt))
      schedule.settledAt = schedule.nextAt;
  }

  revise(schedule: Schedule, expectedRevision: number, policy: Policy): "revised" | "conflict" | "not-found" {
    if (schedule.status === "deleted") return "not-found";
    if (schedule.revision !== expectedRevision) return "conflict";
    const before = schedule.policy;
    this.materialize(schedule);
    schedule.revision += 1;
    schedule.policy = policy;
    if (policy.everyMinutes !== before.everyMinutes) {
      if (schedule.status === "paused") {
        schedule.policy = before;
        this.#letGoOfPause(schedule);
        schedule.policy = policy;
      }
      schedule.nextAt = instantAfter(policy, Math.max(this.now, schedule.settledAt));
    }
    if (slotsOf(policy) === slotsOf(before)) return "revised";
    const slots = slotsOf(policy);
    const holders = this.openOf(schedule).filter((run) => run.seat !== undefined);
    // The oldest that hold anything sit in the slots; the others go on beside them and hand nothing on.
    for (const [i, run] of holders.entries()) run.seat = i < slots && slots < Number.POSITIVE_INFINITY ? "slot" : "own";
    this.handOn(schedule, Math.max(0, slots - holders.length));
    return "revised";
  }

  pause(schedule: Schedule): "paused" | "not-active" | "not-found" {
    if (schedule.status === "deleted") return "not-found";
    if (schedule.status === "paused") return "not-active";
    this.materialize(schedule);
    schedule.status = "paused";
    return "paused";
  }

  resume(schedule: Schedule): "resumed" | "not-paused" | "not-found" {
    if (schedule.status === "deleted") return "not-found";
    if (schedule.status === "active") return "not-paused";
    schedule.status = "active";
    this.materialize(schedule);
    return "resumed";
  }

  delete(schedule: Schedule): "deleted" | "not-found" {
    if (schedule.status === "deleted") return "not-found";
    if (schedule.status === "paused") this.#letGoOfPause(schedule);
    this.materialize(schedule);
    for (const run of this.openOf(schedule)) if (run.state !== "running") end(run, "canceled");
    schedule.status = "deleted";
    return "deleted";
  }

  runNow(schedule: Schedule): Run | "overlap" | "deleted" {
    if (schedule.status === "deleted") return "deleted";
    const at = Math.floor(this.now / 1000) * 1000;
    this.#bear(schedule, [{ at, manual: true }]);
    const run = this.runs.at(-1)!;
    if (run.state !== "skipped") return run;
    this.runs.pop();
    return "overlap";
  }

  /** Overlap is decided at birth, once; nobody overtakes a run that waits. */
  #bear(schedule: Schedule, births: readonly { at: number; manual: boolean }[]): void {
    const { policy } = schedule;
    const replaces = policy.overlap === "bufferOne" || policy.overlap === "cancelRunning";
    let freed = 0;
    if (policy.overlap === "cancelRunning" && births.length > 0) {
      for (const run of this.openOf(schedule).filter((one) => one.seat !== undefined)) {
        if (run.state === "running") run.cancelRequested = true;
        else {
          if (run.seat === "slot") freed += 1;
          end(run, "canceled");
        }
      }
    }
    for (const { at, manual } of births) {
      const open = this.openOf(schedule);
      const waiting = open.filter((run) => run.state === "blocked" && !run.asked);
      const asked = open.some((run) => run.state === "blocked" && run.asked);
      if (replaces) for (const run of waiting) end(run, "skipped", "overlap");
      const taken = open.filter((run) => run.seat === "slot").length;
      const isFree = (replaces || waiting.length === 0) && (freed > 0 || (!asked && taken < slotsOf(policy)));
      const run = this.#newRun(schedule, at, manual);
      if (policy.overlap === "allow") Object.assign(run, { state: "queued", seat: "own" });
      else if (isFree) {
        Object.assign(run, { state: "queued", seat: "slot" });
        freed = Math.max(0, freed - 1);
      } else if (policy.overlap === "skip") end(run, "skipped", "overlap");
    }
  }

  /** The same run again, with a fresh budget, behind whatever waits. */
  replay(run: Run): string {
    const { schedule, letter } = run;
    if (letter === undefined) return "not-found";
    if (run.state !== "failed" || letter.resolution === "replayed") return "not-failed";
    if (schedule.status === "deleted") return "schedule-deleted";
    const open = this.openOf(schedule);
    const taken = open.filter((one) => one.seat === "slot").length;
    const isFree = open.every((one) => one.state !== "blocked") && taken < slotsOf(schedule.policy);
    const seat = schedule.policy.overlap === "allow" ? "own" : isFree ? "slot" : undefined;
    const state = seat === undefined ? "blocked" : "queued";
    Object.assign(run, { state, seat, asked: true, notBefore: run.at, budgetFrom: this.now });
    Object.assign(run, { spent: 0, interruptions: 0, expiries: 0 });
    letter.resolution = "replayed";
    return `replayed ${state}`;
  }

  dismiss({ letter }: Run): string {
    if (letter === undefined) return "not-found";
    if (letter.resolution !== undefined) return `resolved ${letter.resolution}`;
    letter.resolution = "dismissed";
    return "dismissed";
  }

  #newRun(schedule: Schedule, at: number, manual: boolean): Run {
    const run: Run = {
      id: undefined,
      schedule,
      policy: schedule.policy,
      at,
      manual,
      state: "blocked",
      seat: undefined,
      skipReason: undefined,
      notBefore: at,
      attempt: 0,
      budgetFrom: this.now,
      spent: 0,
      interruptions: 0,
      expiries: 0,
      cancelRequested: false,
      fence: undefined,
      worker: undefined,
      leaseUntil: 0,
      deadlineAt: 0,
      letter: undefined,
      asked: false,
      result: undefined,
    };
    this.runs.push(run);
    return run;
  }

  protected handOn(schedule: Schedule, slots: number): void {
    const blocked = this.openOf(schedule).filter((run) => run.state === "blocked");
    const seat = slotsOf(schedule.policy) === Number.POSITIVE_INFINITY ? "own" : "slot";
    for (const run of blocked.slice(0, slots)) Object.assign(run, { state: "queued", seat });
  }

  /** Ends these runs, and then gives what they held to the oldest that wait. */
  protected endAll(runs: readonly Run[], how: (run: Run) => void): void {
    const freed = runs.filter((run) => run.seat === "slot").map((run) => run.schedule);
    for (const run of runs) how(run);
    for (const schedule of freed) this.handOn(schedule, 1);
  }
}

export function end(run: Run, state: Run["state"], skipReason?: string): void {
  Object.assign(run, { state, skipReason, seat: undefined, fence: undefined, worker: undefined });
}

function byAge(one: Run, other: Run): number {
  return one.at - other.at || ((one.id ?? "") < (other.id ?? "") ? -1 : 1);
}

function instantAfter({ everyMinutes }: Policy, at: number): number {
  const every = everyMinutes * 60 * SECOND;
  return (Math.floor(at / every) + 1) * every;
}
