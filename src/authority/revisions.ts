import { LRUCache } from "lru-cache";
import type { Definition, Payload } from "../domain/definition.ts";
import type { CompiledRule, RuleFault } from "../domain/recurrence/compile.ts";
import { mayHoldSealed } from "../domain/secrets/forms.ts";
import type { Uuid } from "../kernel/ids.ts";
import { type Queryable, sql } from "../store/database.ts";
import type { PinnedZones } from "./timezones/pinned-zones.ts";

/** A schedule's revision. Revisions never change, so a process may keep what it has read. */
export type Revision = {
  definition: Definition;
  payload: Payload;
  /** Its payload may hold sealed secrets. Told from its text when it was read: no attempt looks for them in vain. */
  maySeal: boolean;
};

/** `content` is the digest of what the revision says (null: unknown); revisions with equal digests are read once. */
export type RevisionKey = { scheduleId: Uuid; revision: number; content: Uuid | null };

/** The revision that a row of a schedule points to. */
export function revisionOf(row: { schedule_id: Uuid; revision: number; content: Uuid | null }): RevisionKey {
  return { scheduleId: row.schedule_id, revision: row.revision, content: row.content };
}

export type RevisionCache = {
  /** Loads what is missing in one statement; every key is answered or the database is broken. */
  load(db: Queryable, keys: readonly RevisionKey[]): Promise<void>;
  get(key: RevisionKey): Revision;
  /** The compiled rule, or why it cannot be computed at present. */
  rule(definition: Definition): { ok: true; rule: CompiledRule } | { ok: false; fault: RuleFault };
};

const SELECT = sql(
  "revisions_load",
  `select r.schedule_id, r.revision, r.content, r.definition::text as definition, r.payload::text as payload
     from unnest($1::uuid[], $2::int[]) as k (schedule_id, revision)
     join schedule_revision r using (schedule_id, revision)`,
);

type Row = { schedule_id: Uuid; revision: number; content: Uuid | null; definition: string; payload: string };

export function createRevisionCache(pinned: PinnedZones): RevisionCache {
  const revisions = new LRUCache<string, Revision>({ max: 50_000 });
  // Thousands of schedules share a definition and differ in their payload; equal texts are parsed once and share one object.
  const parsed = new LRUCache<string, object>({ max: 20_000 });
  const nameOf = (key: RevisionKey) => key.content ?? `${key.scheduleId} ${key.revision}`;

  function parse(text: string): object {
    const known = parsed.get(text);
    if (known !== undefined) return known;
    const fresh: object = JSON.parse(text);
    parsed.set(text, fresh);
    return fresh;
  }

  return {
    async load(db, keys) {
      const missing = new Map<string, RevisionKey>();
      for (const key of keys) {
        const name = nameOf(key);
        // Found is found anew: what the others push out must not be of this batch.
        if (!missing.has(name) && revisions.get(name) === undefined) missing.set(name, key);
      }
      if (missing.size === 0) return;
      const wanted = [...missing.values()];
      const rows = await db.query<Row>(SELECT, [
        wanted.map((key) => key.scheduleId),
        wanted.map((key) => key.revision),
      ]);
      for (const row of rows) {
        const definition = parse(row.definition) as Definition;
        const payload = parse(row.payload) as Payload;
        const revision = { definition, payload, maySeal: mayHoldSealed(row.payload) };
        revisions.set(nameOf(revisionOf(row)), revision);
        // Asked for without its digest, it is looked for without it.
        const plain = nameOf({ scheduleId: row.schedule_id, revision: row.revision, content: null });
        if (missing.has(plain)) revisions.set(plain, revision);
      }
    },
    get(key) {
      const revision = revisions.get(nameOf(key));
      if (revision === undefined) throw new Error(`revision ${nameOf(key)} is not loaded`);
      return revision;
    },
    rule: (definition) => pinned.book().rule(definition),
  };
}
