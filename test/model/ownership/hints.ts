import fc from "fast-check";
import { publishOutbox } from "../../../src/authority/dispatch/publish.ts";
import { unpublish } from "../../../src/authority/dispatch/unpublish.ts";
import { claim, complete, expire } from "./attempts.ts";
import { isOpen } from "./births.ts";
import { command, fate, seldom } from "./command.ts";
import { isNamed } from "./reference.ts";
import { move } from "./schedules.ts";
import type { Fate, Stage } from "./stage.ts";

/** What relays and hint sweepers do. Redis may lose all of it: no run stands anywhere else for that. */

const SLOTS = new Map([["short", 1_000]]);

async function published({ world }: Stage): Promise<{ rowId: bigint; publishNo: number }[]> {
  const text = 'select id as "rowId", publish_no as "publishNo" from outbox where published_at is not null order by id';
  return (await world.admin.query(text)).rows;
}

/** Two relays, one after the other: what is published once is not published again, until its hint was found to be lost. */
async function publishTwice(stage: Stage, args: { fate: Fate }) {
  const { reference } = stage;
  await stage.play(args.fate, {
    async ask(authority) {
      const before = new Set((await published(stage)).map((row) => row.rowId));
      const rows = [...(await publishOutbox(authority, SLOTS)).rows, ...(await publishOutbox(authority, SLOTS)).rows];
      const ids = rows.map((row) => row.id);
      const named = reference.runs.filter((run) => rows.some((row) => row.runs.includes(run.id!)));
      return {
        twice: ids.filter((id, i) => before.has(id) || ids.indexOf(id) !== i).length,
        early: named.filter((run) => isNamed(run) && run.notBefore > reference.now).length,
      };
    },
    tell: () => ({ twice: 0, early: 0 }),
  });
}

/** Redis was emptied, or has lost one hint; a sweeper that looked too long ago is not believed. */
async function loseHints(stage: Stage, args: { all: boolean; late: boolean; fate: Fate }) {
  const rows = await published(stage);
  const seen = (args.all ? rows : rows.slice(0, 1)).map((row) => ({
    ...row,
    publishNo: row.publishNo - (args.late ? 1 : 0),
  }));
  let found = args.late ? 0 : seen.length;
  await stage.play(args.fate, {
    ask: (authority) => unpublish(authority, seen),
    tell() {
      const count = found;
      found = 0;
      return count;
    },
  });
}

/** Nothing is stuck: with time and workers enough, whatever is open starts and ends. */
async function drain(stage: Stage) {
  const { reference } = stage;
  for (let waves = 0; ; waves++) {
    const open = reference.runs.filter(isOpen);
    if (open.length === 0) return;
    if (waves > 200) throw new Error(`${open.length} runs never end`);
    const waitUntil = Math.max(...open.filter(isNamed).map((run) => run.notBefore));
    await move(stage, { ms: Math.max(1, Math.ceil((waitUntil - reference.now) / 1000)) });
    const running = open.filter((run) => run.state === "running");
    const runs = running.map((_, i) => i).filter((i) => i % 5 !== 4);
    if (running.some((run) => run.leaseUntil < reference.now))
      await expire(stage, { runs, forgiven: true, fate: "fine" });
    await claim(stage, { hints: stage.hints().map((_, i) => i), slots: 100, worker: "w", fate: "fine" });
    const held = reference.grants.flatMap(({ run, fence }, i) => (run.fence === fence ? [i] : []));
    if (held.length === 0) continue;
    const grants = held.map((i) => reference.grants.length - 1 - i);
    await complete(stage, { grants, outputs: [0], mistaken: false, late: false, poisonAt: -1, fate: "fine" });
  }
}

export const HINT_COMMANDS = [
  { weight: 3, arbitrary: command("publish x2", { fate }, publishTwice) },
  { weight: 2, arbitrary: command("lose hints", { all: fc.boolean(), late: seldom, fate }, loseHints) },
  { weight: 1, arbitrary: command("drain", {}, drain) },
];
