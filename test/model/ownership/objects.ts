import { createHash, randomUUID } from "node:crypto";
import fc from "fast-check";
import { cleanObjects, findExpiredResults, findOrphanObjects } from "../../../src/authority/objects/clean-objects.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { pinResult } from "../../../src/authority/objects/pin-result.ts";
import { findGoingObjects, settleDeletions } from "../../../src/authority/objects/settle-deletions.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { wasGranted } from "./attempts.ts";
import { command, fate, few, pickNewest, seldom, some } from "./command.ts";
import type { Reference } from "./reference.ts";
import { type Fate, look, type Stage } from "./stage.ts";
import type { StoredObject } from "./terms.ts";

/** What workers upload, readers hold on to, and cleaners delete. */

const wasStored = ({ objects }: Reference) => objects.length > 0;
const wasPublished = ({ runs }: Reference) => runs.some((run) => run.result !== undefined);
const MOST = 10_000;
const tenantsOf = ({ tenants }: Reference) => tenants.map((one) => one.id);

/** Two texts may come out of an attempt, each under a name of its own. Now and then the bytes never arrive. */
export async function upload(stage: Stage, args: { grant: number; text: "a" | "b"; lost: boolean; fate: Fate }) {
  const { reference } = stage;
  const grant = pickNewest(reference.grants, args.grant);
  const sha256 = createHash("sha256").update(args.text).digest("hex");
  let id: Uuid | undefined;
  await stage.play(args.fate, {
    async ask(authority) {
      const attempt = { runId: grant.run.id!, fence: grant.fence };
      const uri = `test:${randomUUID()}`;
      const granted = await grantUpload(authority, { ...attempt, name: args.text, uri, mediaType: "text/plain" });
      if (granted.kind !== "granted") return granted.kind as string;
      id = granted.objectId;
      if (args.lost) return granted.kind;
      const staged = await stageObject(authority, { ...attempt, objectId: id, uri, version: sha256, sha256, size: 1 });
      return `${granted.kind}, ${staged.kind}`;
    },
    tell: () => reference.stage(grant, args.text, args.lost ? undefined : sha256),
    learn() {
      const granted = reference.objects.find((one) => one.id === undefined);
      if (granted !== undefined) granted.id = id;
    },
  });
}

async function pin(stage: Stage, args: { run: number; forMs: number; stranger: boolean; fate: Fate }) {
  const { reference } = stage;
  const published = reference.runs.filter((run) => run.result !== undefined);
  const run = pickNewest(published, args.run);
  const tenantId = args.stranger ? reference.tenants[0]!.id : run.schedule.tenant.id;
  const request = { tenantId, runId: run.id!, forMs: args.forMs };
  await stage.play(args.fate, {
    ask: async (authority) => ((await pinResult(authority, request)) ? "pinned" : "no-result"),
    tell: () => (tenantId === run.schedule.tenant.id && reference.pin(run, args.forMs) ? "pinned" : "no-result"),
  });
}

/** Of those that are found, and of those that were found too early. A week may have gone by for links that were given away. */
async function clean(stage: Stage, args: { objects: number[]; keptMs: number; week: boolean; fate: Fate }) {
  const { reference, world, setting } = stage;
  if (args.week) {
    await world.admin.query(
      `update object set pin_until = 'epoch'::timestamptz + $1::bigint * interval '1 microsecond'
        where tenant_id = any($2::uuid[]) and pin_until is not null`,
      [reference.now, tenantsOf(reference)],
    );
    reference.letLinksDie();
  }
  const known = (ids: readonly Uuid[]) =>
    new Set(reference.objects.flatMap((one) => (ids.includes(one.id!) ? [one.id!] : [])));
  const [first] = setting.authorities;
  const found = {
    orphans: [...known(await look(() => findOrphanObjects(first, MOST)))],
    expired: [...known(await look(() => findExpiredResults(first, MOST, args.keptMs)))],
  };
  agree(
    "orphans",
    found.orphans,
    reference.objects.filter((one) => reference.isOrphan(one)),
  );
  agree(
    "expired results",
    found.expired,
    reference.objects.filter((one) => reference.isExpired(one, args.keptMs)),
  );

  const doubtful = args.objects.map((n) => pickNewest(reference.objects, n));
  const ids = [...found.orphans, ...found.expired].slice(0, args.objects.length).concat(doubtful.map((one) => one.id!));
  const objects = reference.objects.filter((one) => ids.includes(one.id!));
  await stage.play(args.fate, {
    ask: async (authority) => ({ deleting: (await cleanObjects(authority, ids, args.keptMs)).toSorted() }),
    tell: () => ({
      deleting: reference
        .clean(objects, args.keptMs)
        .map((one) => one.id!)
        .toSorted(),
    }),
  });
}

/** What the object store has said of those whose time has come; a month may have gone by for those that are long gone. */
async function removeBytes(stage: Stage, args: { fails: boolean; month: boolean; fate: Fate }) {
  const { reference, world, setting } = stage;
  if (args.month) {
    reference.letMonthPass();
    await world.admin.query(
      `update object set granted_until = granted_until - interval '720 hours', deleted_at = deleted_at - interval '720 hours',
              clean_at = clean_at - interval '720 hours'
        where tenant_id = any($1::uuid[]) and state = 'deleted'`,
      [tenantsOf(reference)],
    );
  }
  const going = await look(() => findGoingObjects(setting.authorities[0], MOST));
  const due = reference.going();
  const mine = going.filter((one) => reference.objects.some((object) => object.id === one.id));
  agree(
    "objects to delete",
    mine.map((one) => one.id),
    due,
  );
  const isForgotten = (id: Uuid) => mine.find((one) => one.id === id)!.todo === "forget";
  agree(
    "objects to forget",
    mine.map((one) => one.id).filter(isForgotten),
    due.filter((one) => reference.isToBeForgotten(one)),
  );
  const heard = args.fails ? ("failed" as const) : ("removed" as const);
  const deletions = due.map(({ id }) => ({ id: id!, outcome: isForgotten(id!) ? ("forget" as const) : heard }));
  await stage.play(args.fate, {
    async ask(authority) {
      await settleDeletions(authority, deletions);
      return deletions.map((one) => one.outcome);
    },
    tell() {
      for (const one of due) reference.settleDeletion(one, !args.fails);
      return deletions.map((one) => one.outcome);
    },
  });
}

/** What chance alone seldom brings together: something to be cleaned, and its bytes gone. */
async function clear(stage: Stage, args: { fate: Fate }) {
  await clean(stage, { objects: [0, 1, 2], keptMs: 1_000, week: true, fate: "fine" });
  await removeBytes(stage, { fails: false, month: false, fate: args.fate });
}

function agree(what: string, ids: readonly Uuid[], objects: readonly StoredObject[]): void {
  const expected = objects
    .map((one) => one.id!)
    .toSorted()
    .join(" ");
  const found = ids.toSorted().join(" ");
  if (found !== expected) throw new Error(`${what}: ${found || "none"}, and should be ${expected || "none"}`);
}

const keptMs = fc.constantFrom(240_000, 1_000, 3_600_000);

export const OBJECT_COMMANDS = [
  {
    weight: 6,
    arbitrary: command(
      "upload",
      { grant: some, text: fc.constantFrom("a", "b"), lost: seldom, fate },
      upload,
      wasGranted,
    ),
  },
  {
    weight: 3,
    arbitrary: command(
      "pin",
      { run: some, forMs: fc.constantFrom(1_000, 300_000), stranger: seldom, fate },
      pin,
      wasPublished,
    ),
  },
  { weight: 3, arbitrary: command("clear", { fate }, clear, wasStored) },
  { weight: 8, arbitrary: command("clean", { objects: few(3), keptMs, week: fc.boolean(), fate }, clean, wasStored) },
  {
    weight: 4,
    arbitrary: command("remove bytes", { fails: seldom, month: fc.boolean(), fate }, removeBytes, ({ objects }) =>
      objects.some((one) => one.cleanAt !== undefined),
    ),
  },
];
