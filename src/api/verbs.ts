import type { Authority } from "../authority/authority.ts";
import type { Definition, Payload, Work } from "../domain/definition.ts";
import type { RuleFault } from "../domain/recurrence/compile.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { ScheduleView } from "../store/reads/schedules.ts";

// Stand-ins with the contract's signatures until the verbs exist.
type RequestKey = { key: string; bodySha256: Buffer };
const missing = (): never => {
  throw new Error("not written yet");
};
export async function createSchedule(
  _a: Authority,
  _r: {
    tenantId: Uuid;
    actor: string;
    requestKey?: RequestKey;
    key?: string;
    name: string;
    labels: Record<string, string>;
    managedBy?: string;
    notes?: string;
    definition: Definition;
    payload: Payload;
  },
): Promise<
  | { kind: "created" | "repeated"; schedule: ScheduleView }
  | { kind: "key-reused" }
  | { kind: "key-taken"; scheduleId: Uuid }
  | { kind: "invalid"; fault: RuleFault }
> {
  return missing();
}
export async function reviseSchedule(
  _a: Authority,
  _r: {
    tenantId: Uuid;
    actor: string;
    scheduleId: Uuid;
    expectedRevision: number;
    change: {
      name?: string;
      labels?: Record<string, string>;
      notes?: string | null;
      managedBy?: string | null;
      definition?: Definition;
      payload?: Payload;
    };
  },
): Promise<
  | { kind: "revised"; schedule: ScheduleView; settled: number }
  | { kind: "conflict"; schedule: ScheduleView }
  | { kind: "not-found" }
  | { kind: "invalid"; fault: RuleFault }
> {
  return missing();
}
export async function pauseSchedule(
  _a: Authority,
  _r: { tenantId: Uuid; actor: string; scheduleId: Uuid; note?: string },
): Promise<
  | { kind: "paused"; schedule: ScheduleView; settled: number }
  | { kind: "not-found" }
  | { kind: "not-active"; schedule: ScheduleView }
> {
  return missing();
}
export async function resumeSchedule(
  _a: Authority,
  _r: { tenantId: Uuid; actor: string; scheduleId: Uuid; note?: string; misfire?: "latest" | "skip" | "all" },
): Promise<
  | { kind: "resumed"; schedule: ScheduleView; plan: { runs: number; skipped: number } }
  | { kind: "not-found" }
  | { kind: "not-paused"; schedule: ScheduleView }
> {
  return missing();
}
export async function deleteSchedule(
  _a: Authority,
  _r: { tenantId: Uuid; actor: string; scheduleId: Uuid },
): Promise<{ kind: "deleted"; canceled: number } | { kind: "not-found" }> {
  return missing();
}
export type RunMade =
  | { kind: "created" | "repeated"; runId: Uuid; state: string }
  | { kind: "key-reused" }
  | { kind: "overlap" }
  | { kind: "deleted" }
  | { kind: "not-found" };
export async function runNow(
  _a: Authority,
  _r: { tenantId: Uuid; actor: string; scheduleId: Uuid; requestKey?: RequestKey; payload?: Payload },
): Promise<RunMade> {
  return missing();
}
export async function runAdHoc(
  _a: Authority,
  _r: { tenantId: Uuid; actor: string; requestKey?: RequestKey; work: Work; payload: Payload },
): Promise<RunMade> {
  return missing();
}
export async function cancelRuns(
  _a: Authority,
  _r: readonly { tenantId: Uuid; runId: Uuid }[],
): Promise<
  readonly (
    | { kind: "accepted" }
    | { kind: "requested" }
    | { kind: "too-late"; state: string }
    | { kind: "not-found" }
  )[]
> {
  return missing();
}
export async function pinResult(_a: Authority, _r: { tenantId: Uuid; runId: Uuid; untilAt: number }): Promise<void> {
  return missing();
}
