import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { findDueSends, findLapsedSends } from "../../../src/authority/effects/due.ts";
import { lapseEffects } from "../../../src/authority/effects/lapse.ts";
import { DECISIONS, type Decision, resolveEffect } from "../../../src/authority/effects/resolve.ts";
import { sendEffects } from "../../../src/authority/effects/send.ts";
import { settleEffects } from "../../../src/authority/effects/settle.ts";
import { EFFECT_KINDS } from "../../../src/domain/effects/states.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { complete, startOneNow } from "./attempts.ts";
import { command, fate, few, pick, pickNewest, seldom, some } from "./command.ts";
import { upload } from "./objects.ts";
import type { Reference } from "./reference.ts";
import { move } from "./schedules.ts";
import { type Fate, look, type Stage } from "./stage.ts";
import type { Effect, SendReport } from "./terms.ts";

/** What senders do with the intents of accepted results, and what people decide where nobody knows. */

const MOST = { perTenant: 10_000, all: 10_000, sending: [] };
const areThere = ({ effects }: Reference) => effects.length > 0;
const wereSent = ({ sendGrants }: Reference) => sendGrants.length > 0;
const isSending = ({ effects }: Reference) => effects.some((one) => one.state === "sending");
const byId = (one: Effect, other: Effect) => (one.id! < other.id! ? -1 : 1);

/** What all else here begins with: a run that has published a result, and mostly a sender that has begun. */
async function deliver(stage: Stage, args: { schedule: number; sends: boolean }) {
  const { reference } = stage;
  const newest = await startOneNow(stage, args.schedule);
  if (newest === undefined) return;
  await upload(stage, { grant: newest, text: "a", lost: false, fate: "fine" });
  await complete(stage, { grants: [newest], outputs: [1], mistaken: false, late: false, poisonAt: -1, fate: "fine" });
  if (args.sends && areThere(reference)) await send(stage, { effects: [0, 1], leaseMs: 180_000, fate: "fine" });
}

/** Due ones are found as a sender finds them; some that are not go along. */
async function send(stage: Stage, args: { effects: number[]; leaseMs: number; fate: Fate }) {
  const { reference, setting } = stage;
  const due = reference.effects.filter((one) => one.state === "pending" && one.dueAt <= reference.now);
  const found = await Promise.all(
    EFFECT_KINDS.map((kind) => look(() => findDueSends(setting.authorities[0], kind, MOST))),
  );
  agree(
    "due effects",
    found.flatMap((one) => one.ids),
    due,
    reference,
  );

  const effects = [...due.slice(-args.effects.length), ...args.effects.map((n) => pickNewest(reference.effects, n))];
  const request = {
    claimId: randomUUID(),
    sender: "s",
    effectIds: effects.map((one) => one.id!),
    leaseMs: args.leaseMs,
  };
  let sent: Effect[] | undefined;
  let fences: bigint[] = [];
  await stage.play(args.fate, {
    async ask(authority, repeated) {
      const grants = await sendEffects(authority, { ...request, repeated });
      fences = grants.map((one) => one.fence);
      return grants.map((one) => `${one.effectId} ${one.attempt} ${one.result?.version}`);
    },
    tell() {
      sent ??= reference.send(effects, args.leaseMs).toSorted(byId);
      return sent.map((one) => `${one.id} ${one.sends.length} ${one.object?.sha256}`);
    },
    learn() {
      for (const [i, effect] of sent!.entries()) {
        const made = effect.sends.at(-1)!;
        if (effect.sends.some((one) => one.fence !== undefined && one.fence >= fences[i]!))
          throw new Error(`${fences[i]} is not above every fence that the effect had`);
        made.fence = fences[i]!;
        reference.sendGrants.push({ effect, send: made });
      }
    },
  });
}

type Reported = { grant: number; kind: SendReport["kind"]; transient: boolean };

/** Reports in one batch: some of senders that were overtaken, some twice, some that contradict each other. */
async function settle(stage: Stage, args: { reports: Reported[]; retryAfterMs: number | undefined; fate: Fate }) {
  const { reference } = stage;
  const given = args.reports.map(({ grant, ...report }) => ({
    grant: pickNewest(reference.sendGrants, grant),
    report: { ...report, retryAfterMs: args.retryAfterMs },
  }));
  await stage.play(args.fate, {
    async ask(authority) {
      const reports = given.map(({ grant: { effect, send: made }, report }) => ({
        effectId: effect.id!,
        fence: made.fence!,
        report: { ...report, externalId: null, message: "x" },
      }));
      const outcomes = await settleEffects(authority, reports);
      return outcomes.map((one) => ("state" in one ? `${one.kind} ${one.state}` : one.kind));
    },
    tell: () => given.map(({ grant, report }) => reference.settle(grant, report)),
  });
}

async function lapse(stage: Stage, args: { effects: number[]; fate: Fate }) {
  const { reference, setting } = stage;
  const over = reference.effects.filter((one) => one.state === "sending" && one.leaseUntil < reference.now);
  agree("lapsed effects", await look(() => findLapsedSends(setting.authorities[0], MOST.all)), over, reference);
  const effects = [...over.slice(0, args.effects.length), ...args.effects.map((n) => pick(reference.effects, n))];
  await stage.play(args.fate, {
    ask: (authority) =>
      lapseEffects(
        authority,
        effects.map((one) => one.id!),
      ),
    tell: () => reference.lapse(effects),
  });
}

/** Whoever was sending is not heard of, and others send it since: what was told to come too late may come now. */
async function overtake(stage: Stage, args: { fate: Fate }) {
  const { reference } = stage;
  const sending = reference.effects.filter((one) => one.state === "sending");
  await moveTo(stage, Math.max(...sending.map((one) => one.leaseUntil)));
  await lapse(stage, { effects: sending.map((one) => reference.effects.indexOf(one)), fate: args.fate });
  const pending = sending.filter((one) => one.state === "pending");
  if (pending.length === 0) return;
  await moveTo(stage, Math.max(...pending.map((one) => one.dueAt)));
  await send(stage, { effects: pending.map(() => 0), leaseMs: 180_000, fate: "fine" });
}

function moveTo(stage: Stage, at: number) {
  return move(stage, { ms: Math.max(1, Math.ceil((at - stage.reference.now) / 1000) + 1) });
}

/** Mostly of one that waits for a person; now and then of any. */
async function resolve(
  stage: Stage,
  args: { effect: number; any: boolean; decision: Decision; stranger: boolean; fate: Fate },
) {
  const { reference } = stage;
  const waiting = reference.effects.filter((one) => one.state === "uncertain" || one.state === "failed");
  const effect = pickNewest(args.any || waiting.length === 0 ? reference.effects : waiting, args.effect);
  const owner = effect.run.schedule.tenant.id;
  const tenantId = args.stranger ? reference.tenants[0]!.id : owner;
  const { decision } = args;
  await stage.play(args.fate, {
    async ask(authority) {
      const request = { tenantId, actor: "model", effectId: effect.id!, decision, reason: "model" };
      const outcome = await resolveEffect(authority, request);
      return "state" in outcome ? `${outcome.kind} ${outcome.state}` : outcome.kind;
    },
    tell: () => (tenantId === owner ? reference.resolve(effect, decision) : "not-found"),
  });
}

/** Other sequences have left effects behind: only those of this one count. */
function agree(what: string, ids: readonly Uuid[], effects: readonly Effect[], reference: Reference): void {
  const expected = effects
    .map((one) => one.id!)
    .toSorted()
    .join(" ");
  const mine = ids.filter((id) => reference.effects.some((one) => one.id === id));
  const found = mine.toSorted().join(" ");
  if (found !== expected) throw new Error(`${what}: ${found || "none"}, and should be ${expected || "none"}`);
}

const kind = fc.constantFrom<SendReport["kind"]>("unknown", "sent", "refused", "sent", "unknown", "not-sent");
const report = fc.record({ grant: some, kind, transient: fc.boolean() });

export const EFFECT_COMMANDS = [
  {
    weight: 12,
    arbitrary: command(
      "deliver",
      { schedule: some, sends: fc.boolean() },
      deliver,
      ({ schedules }) => schedules.length > 0,
    ),
  },
  {
    weight: 8,
    arbitrary: command("send", { effects: few(3), leaseMs: fc.constantFrom(180_000, 1_000), fate }, send, areThere),
  },
  {
    weight: 7,
    arbitrary: command(
      "settle",
      {
        reports: fc.array(report, { minLength: 1, maxLength: 3 }),
        retryAfterMs: fc.constantFrom(undefined, undefined, 90_000),
        fate,
      },
      settle,
      wereSent,
    ),
  },
  { weight: 2, arbitrary: command("lapse", { effects: few(3), fate }, lapse, isSending) },
  { weight: 4, arbitrary: command("overtake", { fate }, overtake, isSending) },
  {
    weight: 3,
    arbitrary: command(
      "resolve",
      { effect: some, any: seldom, decision: fc.constantFrom(...DECISIONS), stranger: seldom, fate },
      resolve,
      areThere,
    ),
  },
];
