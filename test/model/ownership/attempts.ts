import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { adoptRuns } from "../../../src/authority/attempts/adopt.ts";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { detachRuns } from "../../../src/authority/attempts/detach.ts";
import { expireLeases } from "../../../src/authority/attempts/expire.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import type { Authority } from "../../../src/authority/authority.ts";
import { cancelRuns } from "../../../src/authority/runs/cancel.ts";
import type { Failure } from "../../../src/domain/retry.ts";
import { createBatcher } from "../../../src/kernel/batcher.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { isPoison } from "../../../src/store/sql-errors.ts";
import { command, fate, few, pick, pickNewest, seldom } from "./command.ts";
import type { Reference } from "./reference.ts";
import { move, runOneNow } from "./schedules.ts";
import { type Fate, inMicroseconds, type Stage } from "./stage.ts";
import type { Grant, Run, StoredObject } from "./terms.ts";

/** What workers and the sweeper do. A worker may be any that was ever granted anything: most have been overtaken since. */

const isRunning = ({ runs }: Reference) => runs.some((run) => run.state === "running");
export const wasGranted = ({ grants }: Reference) => grants.length > 0;
const idOf = (run: Run) => run.id!;

/** What is claimed are hints: some name rows that are there, some rows that are gone, some come twice. */
export async function claim(
  stage: Stage,
  args: { hints: number[]; slots: number; worker: string; fate: Fate },
): Promise<number> {
  const { reference } = stage;
  const hints = stage.hints();
  const gone = stage.everyHint.filter((id) => hints.every((one) => one.id !== id)).slice(-3);
  const all = [...hints.map((one) => one.id), ...gone];
  if (all.length === 0) return 0;
  const wanted = args.hints.map((n) => pick(all, n));
  const rows = hints.filter((one) => wanted.includes(one.id)).map((one) => one.runs);
  const request = {
    claimId: randomUUID(),
    worker: args.worker,
    slots: { short: args.slots },
    hints: wanted.map((rowId) => ({ rowId, epoch: 1 })),
  };
  let started: Run[] | undefined;
  let fences: bigint[] = [];
  await stage.play(args.fate, {
    async ask(authority, repeated) {
      const { grants } = await claimRuns(authority, { ...request, repeated });
      const inOrder = repeated ? grants.toSorted((a, b) => (a.runId < b.runId ? -1 : 1)) : grants;
      fences = inOrder.map((one) => one.fence);
      return inOrder.map((one) => `${one.runId} ${one.attempt} ${inMicroseconds(one.deadlineAt)}`);
    },
    tell() {
      const again = started !== undefined;
      // A claim that granted nothing left nothing to be found by, and its rows are gone.
      started ??= reference.claim(rows, args.slots, args.worker);
      if (again || args.fate !== "fine") started = started.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
      return started.map((run) => `${idOf(run)} ${run.attempt} ${run.deadlineAt}`);
    },
    learn() {
      for (const [i, run] of started!.entries()) {
        const fence = fences[i]!;
        if (
          reference.grants.some(
            (one) => one.fence >= fence && one.run.schedule === run.schedule && !started!.includes(one.run),
          )
        )
          throw new Error(`${fence} is not above every fence that the schedule had`);
        run.fence = fence;
        reference.grants.push({ run, fence, worker: args.worker });
      }
    },
  });
  return started?.length ?? 0;
}

type Batch = { grants: number[]; poisonAt: number; fate: Fate };
const batch = { grants: few(5), poisonAt: fc.oneof({ weight: 9, arbitrary: fc.constant(-1) }, fc.nat(4)), fate };

/** A batch as workers send it: the same run twice, three tenants, and one item that nobody can make sense of. */
async function inOneBatch<Item extends Held>(
  stage: Stage,
  { poisonAt, ...args }: { poisonAt: number; fate: Fate },
  items: readonly Item[],
  verb: (authority: Authority, items: readonly Item[]) => Promise<readonly string[]>,
  tell: (at: number) => string,
): Promise<void> {
  const sent = [...items];
  if (poisonAt >= 0) sent.splice(poisonAt, 0, { ...items[0]!, runId: "no uuid at all" });
  await stage.play(poisonAt >= 0 ? "fine" : args.fate, {
    async ask(authority) {
      const run = (some: readonly Item[]) => verb(authority, some);
      const { submit } = createBatcher({ run, maxItems: 300, lanes: 1, isPoison });
      const settled = await Promise.allSettled(sent.map((item) => submit(item)));
      const broken = settled.find((one) => one.status === "rejected" && !isPoison(one.reason));
      if (broken !== undefined) throw (broken as PromiseRejectedResult).reason;
      return settled.map((one, i) => (one.status === "rejected" ? "poison" : isSecond(sent, i) ? "again" : one.value));
    },
    tell() {
      const answers = items.map((_, i) => {
        const answer = tell(i);
        return isSecond(items, i) ? "again" : answer;
      });
      if (poisonAt >= 0) answers.splice(poisonAt, 0, "poison");
      return answers;
    },
  });
}

/** The second of two equal items in one batch: it must change nothing, however it is answered. */
function isSecond(items: readonly Held[], at: number): boolean {
  return items.slice(0, at).some((one) => one.runId === items[at]!.runId && one.fence === items[at]!.fence);
}

const grantsOf = ({ reference }: Stage, picks: readonly number[]) => picks.map((n) => pickNewest(reference.grants, n));
type Held = { runId: Uuid; fence: bigint; worker: string };
const held = ({ run, fence, worker }: Grant): Held => ({ runId: idOf(run), fence, worker });

/** What chance alone seldom brings together: a run now, and a worker at it. Which grant is that, counted from the newest? */
export async function startOneNow(stage: Stage, schedule: number): Promise<number | undefined> {
  await runOneNow(stage, { schedule, fate: "fine" });
  await claim(stage, { hints: stage.hints().map((_, i) => i), slots: 100, worker: "w", fate: "fine" });
  const newest = stage.reference.grants.toReversed().findIndex(({ run, fence }) => run.fence === fence);
  return newest < 0 ? undefined : newest;
}

async function beat(stage: Stage, args: Batch & { late: boolean }) {
  const grants = grantsOf(stage, args.grants);
  // Its lease holds, but not the time that it has in all: chance alone seldom comes to that.
  if (args.late) await outlast(stage, grants[0]!.run, "deadlineAt");
  const verb = async (authority: Authority, beats: readonly Held[]) =>
    (await heartbeat(authority, beats)).map((one) =>
      one.kind === "renewed"
        ? `renewed${one.cancelRequested ? ", cancel" : ""} ${inMicroseconds(one.remainingMs)}`
        : one.kind,
    );
  await inOneBatch(stage, args, grants.map(held), verb, (i) => stage.reference.heartbeat(grants[i]!));
}

/** Time goes by until a running attempt's lease, or its time in all, is over. */
async function outlast(stage: Stage, run: Run, end: "leaseUntil" | "deadlineAt"): Promise<void> {
  const wait = run[end] - stage.reference.now;
  if (run.state === "running" && wait >= 0) await move(stage, { ms: wait / 1000 + 1 });
}

export async function complete(stage: Stage, args: Batch & { outputs: number[]; mistaken: boolean; late: boolean }) {
  const grants = grantsOf(stage, args.grants);
  if (args.late) await outlast(stage, grants[0]!.run, "leaseUntil");
  const outputs = grants.map((grant, i) => outputOf(stage, grant, pick(args.outputs, i), args.mistaken));
  const items = grants.map((grant, i) => {
    const output = outputs[i];
    return {
      ...held(grant),
      output: output === undefined ? null : { objectId: output.object.id!, sha256: output.sha256 },
    };
  });
  const verb = async (authority: Authority, completions: Parameters<typeof completeRuns>[1]) =>
    (await completeRuns(authority, completions)).map((one) => one.kind as string);
  await inOneBatch(stage, args, items, verb, (i) => stage.reference.complete(grants[i]!, outputs[i]));
}

/** Mostly what this very attempt has staged; now and then another's, or another checksum. */
function outputOf(
  stage: Stage,
  grant: Grant,
  n: number,
  mistaken: boolean,
): { object: StoredObject; sha256: string } | undefined {
  const all = stage.reference.objects;
  const own = all.filter((one) => one.fence === grant.fence);
  const from = mistaken ? all : own;
  if (from.length === 0 || n % 4 === 0) return undefined;
  const object = pick(from, n);
  return { object, sha256: (mistaken && n % 2 === 0 ? undefined : object.sha256) ?? "0".repeat(64) };
}

export async function fail(stage: Stage, args: Batch & { transient: boolean; retryAfterMs: number | undefined }) {
  const grants = grantsOf(stage, args.grants);
  const { transient, retryAfterMs } = args;
  const failure = { transient, code: "x", message: "x", retryAfterMs };
  const items = grants.map((grant) => ({ ...held(grant), failure }));
  const verb = async (authority: Authority, reports: readonly (Held & { failure: Failure })[]) =>
    (await failRuns(authority, reports)).map((one) => one.kind as string);
  await inOneBatch(stage, args, items, verb, (i) => stage.reference.fail(grants[i]!, { transient, retryAfterMs }));
}

async function release(stage: Stage, args: Batch) {
  const grants = grantsOf(stage, args.grants);
  const verb = async (authority: Authority, releases: readonly Held[]) =>
    (await releaseRuns(authority, releases)).map((one) => one.kind as string);
  await inOneBatch(stage, args, grants.map(held), verb, (i) => stage.reference.release(grants[i]!));
}

async function detach(stage: Stage, args: Batch & { callbackWithinMs: number }) {
  const grants = grantsOf(stage, args.grants);
  const { callbackWithinMs } = args;
  const items = grants.map((grant) => ({ ...held(grant), callbackWithinMs }));
  const verb = async (authority: Authority, detachments: readonly Held[]) =>
    (await detachRuns(authority, detachments)).map((one) =>
      one.kind === "detached"
        ? `detached${one.cancelRequested ? ", cancel" : ""} ${inMicroseconds(one.callbackDueAt)}`
        : one.kind,
    );
  await inOneBatch(stage, args, items, verb, (i) => stage.reference.detach(grants[i]!, callbackWithinMs));
}

async function adopt(stage: Stage, args: Batch & { worker: string }) {
  const grants = grantsOf(stage, args.grants);
  const items = grants.map((grant) => ({ ...held(grant), worker: args.worker }));
  const verb = async (authority: Authority, adoptions: readonly Held[]) =>
    (await adoptRuns(authority, adoptions)).map((one) =>
      one.kind === "adopted"
        ? `adopted${one.cancelRequested ? ", cancel" : ""} ${one.grant.attempt} ${inMicroseconds(one.remainingMs)}`
        : one.kind,
    );
  await inOneBatch(stage, args, items, verb, (i) => {
    const answer = stage.reference.adopt(grants[i]!, args.worker);
    if (answer.startsWith("adopted")) stage.reference.grants.push({ ...grants[i]!, worker: args.worker });
    return answer;
  });
}

export async function expire(stage: Stage, args: { runs: number[]; forgiven: boolean; fate: Fate }) {
  const { reference, setting } = stage;
  const running = reference.runs.filter((run) => run.state === "running");
  const runs = args.runs.map((n) => pick(n % 5 === 4 ? reference.runs : running, n));
  const forgivenUntil = args.forgiven ? setting.now() : 0;
  await stage.play(args.fate, {
    ask: (authority) => expireLeases(authority, runs.map(idOf), forgivenUntil),
    tell: () => reference.expire(runs, args.forgiven),
  });
}

async function cancel(stage: Stage, args: { runs: number[]; stranger: boolean; fate: Fate }) {
  const { reference } = stage;
  const runs = args.runs.map((n) => pickNewest(reference.runs, n));
  const [stranger] = reference.tenants;
  const asked = runs.map((run) => ({
    tenantId: args.stranger ? stranger!.id : run.schedule.tenant.id,
    runId: idOf(run),
  }));
  await stage.play(args.fate, {
    ask: async (authority) =>
      (await cancelRuns(authority, asked)).map((one) => (one.kind === "too-late" ? `too-late ${one.state}` : one.kind)),
    tell: () =>
      runs.map((run, i) => (asked[i]!.tenantId === run.schedule.tenant.id ? reference.cancel(run) : "not-found")),
  });
}

const worker = fc.constantFrom("w", "v");
const often = fc.nat(3).map((n) => n === 3);
const wasBorn = ({ runs }: Reference) => runs.length > 0;
const outcome = { transient: fc.boolean(), retryAfterMs: fc.constantFrom(undefined, undefined, 90_000) };

export const ATTEMPT_COMMANDS = [
  {
    weight: 14,
    arbitrary: command("claim", { hints: few(6), slots: fc.integer({ min: 1, max: 6 }), worker, fate }, claim, wasBorn),
  },
  { weight: 7, arbitrary: command("heartbeat", { ...batch, late: often }, beat, wasGranted) },
  {
    weight: 10,
    arbitrary: command("complete", { ...batch, outputs: few(3), mistaken: seldom, late: seldom }, complete, wasGranted),
  },
  { weight: 6, arbitrary: command("fail", { ...batch, ...outcome }, fail, wasGranted) },
  { weight: 3, arbitrary: command("release", batch, release, wasGranted) },
  {
    weight: 4,
    arbitrary: command(
      "detach",
      { ...batch, callbackWithinMs: fc.constantFrom(120_000, 1_000, 86_400_000) },
      detach,
      wasGranted,
    ),
  },
  { weight: 4, arbitrary: command("adopt", { ...batch, worker }, adopt, wasGranted) },
  { weight: 6, arbitrary: command("expire", { runs: few(4), forgiven: seldom, fate }, expire, isRunning) },
  { weight: 4, arbitrary: command("cancel", { runs: few(4), stranger: seldom, fate }, cancel, wasBorn) },
];
