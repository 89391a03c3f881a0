import { randomUUID } from "node:crypto";
import type { Authority } from "../../../src/authority/authority.ts";
import { PunctualError } from "../../../src/kernel/errors.ts";
import { mintId, type Uuid } from "../../../src/kernel/ids.ts";
import { isConnectionLoss } from "../../../src/store/sql-errors.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { createWorld, type World } from "../../support/world.ts";
import { Crash, createSetting, type Setting } from "../setting.ts";
import { type Facts, readFacts, told } from "./facts.ts";
import { Reference } from "./reference.ts";
import type { Run, Tenant } from "./terms.ts";

/** What may happen to a verb at its commit. The first is the ordinary case, to which fast-check shrinks. */
export const FATES = ["fine", "reply lost", "process dies", "connections break"] as const;
export type Fate = (typeof FATES)[number];

/** A verb as the authority and the reference understand it. The reference is asked once for each time the verb took effect. */
export type Asked<Answer> = {
  ask(authority: Authority, repeated: boolean): Promise<Answer>;
  tell(): Answer;
  /** What only the authority could know (ids, fences). */
  learn?(answer: Answer): void;
};

/** The authority that is tried, one sequence of commands at a time. Kept for many sequences, each with tenants of its own. */
export type Stage = {
  world: World;
  setting: Setting;
  reference: Reference;
  /** What was ever answered: a play in which nothing happens proves nothing. */
  answers: Set<string>;
  /** Outbox rows that were there once: a hint in Redis may still name them. */
  everyHint: bigint[];
  /** Has both do it, the authority as this fate will have it and then again if it was in doubt; compares answers and state. */
  play<Answer>(fate: Fate, asked: Asked<Answer>): Promise<Answer>;
  /** The state of all runs of this sequence is what the reference says. */
  compare(): Promise<void>;
  /** The outbox rows that there are, in their order. */
  hints(): { id: bigint; runs: Run[] }[];
  begin(): Promise<void>;
  /** What the invariants say of the tables, now and then. */
  end(): Promise<void>;
  close(): Promise<void>;
};

const NOT_HERE = [
  // Told by when attempts started, which says nothing once the clock was set back.
  "4: fences grow with the starts of a schedule, and none is given twice",
  // A day is the least that results are kept, and longer than a sequence.
  "3: a result's object is referenced and matches, as long as results are kept",
];
/** How many sequences share one look at the invariants: that costs as much as four verbs. MODEL_EACH=1 looks after each. */
const SEQUENCES_PER_LOOK = process.env.MODEL_EACH === undefined ? 25 : 1;
/** Not truncated: that would have every statement planned anew. */
const EMPTY = [
  ...["run", "attempt", "live_run", "outbox", "usage", "skip_range", "chain", "schedule", "schedule_cursor"],
  ...[
    "schedule_revision",
    "request_key",
    "object",
    "effect_attempt",
    "effect",
    "dead_letter",
    "dead_letter_resolution",
  ],
]
  .map((table) => `delete from ${table}`)
  .join(";");

export async function createStage(): Promise<Stage> {
  const world = await createWorld();
  const setting = await createSetting(world);
  const [first, second] = setting.authorities;
  let sequencesPerLook = SEQUENCES_PER_LOOK;
  let sinceLook = 0;
  let ended = true;
  let facts: Facts = { runs: [], hints: [], objects: [], effects: [] };

  const stage: Stage = {
    world,
    setting,
    reference: new Reference(0, []),
    answers: new Set(),
    everyHint: [],

    async begin() {
      if (!ended) {
        // The one before has failed: from now on each has the tables to itself, so that it can be told which it is.
        sequencesPerLook = 1;
        await world.admin.query(EMPTY);
      }
      ended = false;
      const tenants: Tenant[] = [undefined, 1, 2].map((limit) => ({ id: mintId(Date.now(), 0), limit }));
      await world.admin.query(
        `with t as (insert into tenant (id, name) select id, id from unnest($1::uuid[]) id)
         insert into usage (tenant_id, class, max_running) select unnest($1::uuid[]), 'short', unnest($2::int[])`,
        [tenants.map((one) => one.id), tenants.map((one) => one.limit ?? null)],
      );
      stage.reference = new Reference(inMicroseconds(setting.now()), tenants);
      stage.everyHint = [];
    },

    async play(fate, { ask, tell, learn }) {
      const disarm = arm(setting, fate);
      let answer: Awaited<ReturnType<typeof ask>>;
      let doubtful = false;
      try {
        answer = await ask(first, false);
      } catch (error) {
        if (!(error instanceof Crash || isUnknown(error))) throw error;
        doubtful = true;
      } finally {
        if (disarm() && fate === "reply lost") tell();
      }
      // Whoever is in doubt asks again, elsewhere, as often as it takes.
      while (doubtful) {
        try {
          answer = await ask(second, true);
          doubtful = false;
        } catch (error) {
          if (!isUnknown(error)) throw error;
        }
      }
      const expected = tell();
      if (!same(answer!, expected)) throw new Error(`answered ${show(answer!)}, and should have ${show(expected)}`);
      for (const [word] of show(answer!).matchAll(/[a-z][a-z-]{3,}/g)) stage.answers.add(word);
      learn?.(answer!);
      await stage.compare();
      return answer!;
    },

    async compare() {
      const { reference } = stage;
      facts = await readFacts(world.admin, reference);
      stage.everyHint = [...new Set([...stage.everyHint, ...facts.hints.map((one) => one.id)])];
      told(reference, facts);
    },

    hints() {
      const known = new Map(stage.reference.runs.map((run) => [run.id, run]));
      return facts.hints.map(({ id, runs }) => ({ id, runs: runs.map((run) => known.get(run)!) }));
    },

    async end() {
      if (++sinceLook >= sequencesPerLook) {
        await checkInvariants(world.admin, NOT_HERE);
        await world.admin.query(EMPTY);
        sinceLook = 0;
      }
      ended = true;
    },

    async close() {
      await setting.close();
      await world.close();
    },
  };
  return stage;
}

/** A plain look, taken again if it met a connection that was broken before. */
export async function look<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
    }
  }
}

function arm(setting: Setting, fate: Fate): () => boolean {
  if (fate === "reply lost") return setting.loseReply();
  if (fate === "process dies") return setting.crashAtCommit();
  return fate === "connections break" ? setting.cutAtCommit() : () => false;
}

const isUnknown = (error: unknown) => error instanceof PunctualError && error.code === "outcome-unknown";
const show = (value: unknown) => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}` : one));
const same = (one: unknown, other: unknown) => show(one) === show(other);

export function inMicroseconds(ms: number): number {
  return Math.round(ms * 1000);
}

export const freshKey = (): { key: Uuid; bodySha256: Buffer } => ({ key: randomUUID(), bodySha256: Buffer.alloc(32) });
