import { dismissLetter } from "../../../src/authority/dead-letters/dismiss.ts";
import { replayRun } from "../../../src/authority/dead-letters/replay.ts";
import { fail, startOneNow } from "./attempts.ts";
import { command, fate, pickNewest, seldom, some } from "./command.ts";
import type { Reference } from "./reference.ts";
import { type Fate, freshKey, type Stage } from "./stage.ts";

/** What people decide about runs that were given up. */

const wasBorn = ({ runs }: Reference) => runs.length > 0;

/** Mostly a run that has a letter; now and then any. */
function given({ reference }: Stage, args: { run: number; any: boolean }) {
  const failed = reference.runs.filter((run) => run.letter !== undefined);
  return pickNewest(args.any || failed.length === 0 ? reference.runs : failed, args.run);
}

async function replay(stage: Stage, args: { run: number; any: boolean; fate: Fate }) {
  const run = given(stage, args);
  const requestKey = freshKey();
  const request = { tenantId: run.schedule.tenant.id, actor: "model", runId: run.id!, reason: null, requestKey };
  let done = false;
  await stage.play(args.fate, {
    async ask(authority) {
      const outcome = await replayRun(authority, request);
      const hasState = outcome.kind === "replayed" || outcome.kind === "repeated";
      return hasState ? `${outcome.kind} ${outcome.state}` : outcome.kind;
    },
    tell() {
      if (done) return `repeated ${run.state}`;
      const answer = stage.reference.replay(run);
      done = answer.startsWith("replayed");
      return answer;
    },
  });
}

async function dismiss(stage: Stage, args: { run: number; any: boolean; fate: Fate }) {
  const run = given(stage, args);
  const request = { tenantId: run.schedule.tenant.id, actor: "model", runId: run.id!, reason: null };
  await stage.play(args.fate, {
    async ask(authority) {
      const outcome = await dismissLetter(authority, request);
      return outcome.kind === "resolved" ? `resolved ${outcome.state}` : outcome.kind;
    },
    tell: () => stage.reference.dismiss(run),
  });
}

/** What all else here begins with: a run that is given up. */
async function giveUp(stage: Stage, args: { schedule: number; fate: Fate }) {
  const newest = await startOneNow(stage, args.schedule);
  if (newest === undefined) return;
  await fail(stage, { grants: [newest], transient: false, retryAfterMs: undefined, poisonAt: -1, fate: args.fate });
}

export const PEOPLE_COMMANDS = [
  {
    weight: 5,
    arbitrary: command("give up", { schedule: some, fate }, giveUp, ({ schedules }) => schedules.length > 0),
  },
  { weight: 9, arbitrary: command("replay", { run: some, any: seldom, fate }, replay, wasBorn) },
  { weight: 3, arbitrary: command("dismiss", { run: some, any: seldom, fate }, dismiss, wasBorn) },
];
