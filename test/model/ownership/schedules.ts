import fc from "fast-check";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { materialize } from "../../../src/authority/runs/materialize.ts";
import { runNow } from "../../../src/authority/runs/run-now.ts";
import { createSchedule } from "../../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import type { Definition } from "../../../src/domain/definition.ts";
import { definitionOf } from "../../support/world.ts";
import { command, fate, few, pick, pickNewest, some } from "./command.ts";
import type { Reference } from "./reference.ts";
import { type Fate, freshKey, inMicroseconds, type Stage } from "./stage.ts";
import { type EffectName, type Policy, type Run, type Schedule, SENDINGS } from "./terms.ts";

/** What people, scanners and clocks do. */

export const policy: fc.Arbitrary<Policy> = fc.record({
  overlap: fc.constantFrom("forbid", "skip", "bufferOne", "cancelRunning", "allow 2", "allow 3", "allow"),
  everyMinutes: fc.constantFrom(5, 7),
  maxAttempts: fc.constantFrom(3, 1, 2, 9),
  maxElapsedMinutes: fc.constantFrom(1440, 5),
  startWithinMs: fc.constantFrom(undefined, undefined, 400_000),
  effects: fc.constantFrom<Policy["effects"]>([], ["hook", "mail"], ["call"], ["note", "hook"], ["card"]),
});

function definitionFor(chosen: Policy): Definition {
  const [name, limit] = chosen.overlap.split(" ");
  return definitionOf({
    rule: { kind: "interval", everyMs: chosen.everyMinutes * 60_000, anchorAt: 0 },
    overlap: { policy: name, ...(limit === undefined ? {} : { limit: Number(limit) }) },
    retry: { maxAttempts: chosen.maxAttempts, maxElapsedMs: chosen.maxElapsedMinutes * 60_000 },
    ...(chosen.startWithinMs === undefined ? {} : { startDeadlineMs: chosen.startWithinMs }),
    ...(chosen.effects.length === 0 ? {} : { effects: chosen.effects.map(effectFor) }),
  });
}

function effectFor(name: EffectName) {
  const { kind, onUncertain, windowMinutes, maxAttempts, maxElapsedMinutes } = SENDINGS[name];
  const shared = { name, kind, onUncertain, retry: { maxAttempts, maxElapsedMs: maxElapsedMinutes * 60_000 } };
  return kind === "email"
    ? { ...shared, to: ["ops@example.com"], subject: "Done" }
    : { ...shared, url: "https://hooks.example.com/x", idempotencyWindowMs: windowMinutes * 60_000 };
}

export async function create(stage: Stage, args: { tenant: number; policy: Policy; fate: Fate }): Promise<void> {
  const { reference } = stage;
  const tenant = pick(reference.tenants, args.tenant);
  const requestKey = freshKey();
  const definition = definitionFor(args.policy);
  const request = { tenantId: tenant.id, actor: "model", requestKey, name: "s", labels: {}, definition, payload: {} };
  let made: Schedule | undefined;
  let id: string | undefined;
  await stage.play(args.fate, {
    async ask(authority) {
      const outcome = await createSchedule(authority, request);
      id = "schedule" in outcome ? outcome.schedule.id : undefined;
      return outcome.kind as string;
    },
    tell() {
      if (made !== undefined) return "repeated";
      made = reference.create(tenant, args.policy);
      return "created";
    },
    learn: () => Object.assign(made!, { id }),
  });
}

const of = (schedule: Schedule) => ({ tenantId: schedule.tenant.id, actor: "model", scheduleId: schedule.id! });
const isThere = (reference: Reference) => reference.schedules.length > 0;

async function revise(stage: Stage, args: { schedule: number; policy: Policy; late: boolean; fate: Fate }) {
  const schedule = pick(stage.reference.schedules, args.schedule);
  const expectedRevision = schedule.revision - (args.late && schedule.revision > 1 ? 1 : 0);
  const change = { definition: definitionFor(args.policy) };
  await stage.play(args.fate, {
    ask: async (authority) =>
      (await reviseSchedule(authority, { ...of(schedule), expectedRevision, change })).kind as string,
    tell: () => stage.reference.revise(schedule, expectedRevision, args.policy),
  });
}

const VERBS = { pause: pauseSchedule, resume: resumeSchedule, delete: deleteSchedule } as const;

function onSchedule(name: keyof typeof VERBS) {
  return async (stage: Stage, args: { schedule: number; fate: Fate }) => {
    const schedule = pick(stage.reference.schedules, args.schedule);
    await stage.play(args.fate, {
      ask: async (authority) => (await VERBS[name](authority, of(schedule))).kind as string,
      tell: () => stage.reference[name](schedule),
    });
  };
}

export async function runOneNow(stage: Stage, args: { schedule: number; fate: Fate }) {
  const { reference } = stage;
  const schedule = pick(reference.schedules, args.schedule);
  const requestKey = freshKey();
  let made: Run | undefined;
  let id: string | undefined;
  await stage.play(args.fate, {
    async ask(authority) {
      const outcome = await runNow(authority, { ...of(schedule), requestKey });
      if (!("runId" in outcome)) return outcome.kind as string;
      id = outcome.runId;
      return `${outcome.kind} ${outcome.state}`;
    },
    tell() {
      if (made !== undefined) return `repeated ${made.state}`;
      const told = reference.runNow(schedule);
      if (typeof told === "string") return told;
      made = told;
      return `created ${made.state}`;
    },
    learn: () => made && Object.assign(made, { id }),
  });
}

/** One transaction over several schedules, some of them named twice. */
async function scan(stage: Stage, args: { schedules: number[]; fate: Fate }) {
  const schedules = args.schedules.map((n) => pickNewest(stage.reference.schedules, n));
  await stage.play(args.fate, {
    async ask(authority) {
      const { undecided, unplanned } = await materialize(
        authority,
        schedules.map((one) => one.id!),
        leaveToRelay,
      );
      return { undecided, unplanned };
    },
    tell() {
      for (const schedule of schedules) stage.reference.materialize(schedule);
      return { undecided: 0, unplanned: [] };
    },
  });
}

/** Two scanners at once: whoever comes second finds rows locked or work done. */
async function twoScanners(stage: Stage, args: { fate: Fate }) {
  const ids = stage.reference.schedules.map((one) => one.id!);
  await stage.play(args.fate, {
    async ask(authority) {
      const [, second] = stage.setting.authorities;
      await Promise.all([
        materialize(second, ids.toReversed(), leaveToRelay),
        materialize(authority, ids, leaveToRelay),
      ]);
      return null;
    },
    tell() {
      for (const schedule of stage.reference.schedules) stage.reference.materialize(schedule);
      return null;
    },
  });
}

export async function move(stage: Stage, { ms }: { ms: number }): Promise<void> {
  await stage.setting.move(ms);
  stage.reference.now = inMicroseconds(stage.setting.now());
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const leap = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 8 * SECOND }) },
  { weight: 3, arbitrary: fc.integer({ min: 4 * MINUTE, max: 9 * MINUTE }) },
  { weight: 3, arbitrary: fc.integer({ min: 59 * SECOND, max: 62 * SECOND }) },
  { weight: 1, arbitrary: fc.integer({ min: 15 * MINUTE, max: 22 * MINUTE }) },
  { weight: 1, arbitrary: fc.integer({ min: -6 * MINUTE, max: -1 }) },
);

export const SCHEDULE_COMMANDS = [
  { weight: 3, arbitrary: command("create", { tenant: some, policy, fate }, create) },
  { weight: 3, arbitrary: command("revise", { schedule: some, policy, late: fc.boolean(), fate }, revise, isThere) },
  { weight: 2, arbitrary: command("pause", { schedule: some, fate }, onSchedule("pause"), isThere) },
  { weight: 3, arbitrary: command("resume", { schedule: some, fate }, onSchedule("resume"), isThere) },
  { weight: 1, arbitrary: command("delete", { schedule: some, fate }, onSchedule("delete"), isThere) },
  { weight: 4, arbitrary: command("run-now", { schedule: some, fate }, runOneNow, isThere) },
  { weight: 8, arbitrary: command("materialize", { schedules: few(4), fate }, scan, isThere) },
  { weight: 2, arbitrary: command("materialize x2", { fate: fc.constant<Fate>("fine") }, twoScanners, isThere) },
  { weight: 12, arbitrary: command("clock", { ms: leap }, move) },
];
