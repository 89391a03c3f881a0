import { LRUCache } from "lru-cache";
import type { Definition, Payload, Work } from "../domain/definition.ts";
import { type CompiledRule, compileRule, type RuleFault } from "../domain/recurrence/compile.ts";
import type { ZoneSource } from "../domain/recurrence/zone-source.ts";
import type { Uuid } from "../kernel/ids.ts";
import { type Queryable, sql } from "../store/database.ts";
import { plainArray } from "../store/values.ts";

/** A schedule's revision. Revisions never change, so a process may keep what it has read. */
export type Revision = { definition: Definition; payload: Payload };

export type RevisionKey = { scheduleId: Uuid; revision: number };

export type RevisionCache = {
  /** Loads what is missing in one statement; every key is answered or the database is broken. */
  load(db: Queryable, keys: readonly RevisionKey[]): Promise<void>;
  get(key: RevisionKey): Revision;
  work(key: RevisionKey): Work;
  /** The compiled rule, or why it cannot be computed at present. */
  rule(definition: Definition): { ok: true; rule: CompiledRule } | { ok: false; fault: RuleFault };
};

const SELECT = sql(
  "revisions_load",
  `select r.schedule_id, r.revision, r.definition, r.payload
     from unnest($1::uuid[], $2::int[]) as k (schedule_id, revision)
     join schedule_revision r using (schedule_id, revision)`,
);

export function createRevisionCache(zones: ZoneSource): RevisionCache {
  const revisions = new LRUCache<string, Revision>({ max: 200_000 });
  const rules = new LRUCache<string, ReturnType<typeof compileRule>>({ max: 10_000 });
  const nameOf = (key: RevisionKey) => `${key.scheduleId} ${key.revision}`;

  return {
    async load(db, keys) {
      const missing = new Map<string, RevisionKey>();
      for (const key of keys) {
        const name = nameOf(key);
        if (!revisions.has(name)) missing.set(name, key);
      }
      if (missing.size === 0) return;
      const wanted = [...missing.values()];
      const rows = await db.query<{ schedule_id: Uuid; revision: number } & Revision>(SELECT, [
        plainArray(wanted.map((key) => key.scheduleId)),
        plainArray(wanted.map((key) => key.revision)),
      ]);
      for (const row of rows) {
        revisions.set(`${row.schedule_id} ${row.revision}`, { definition: row.definition, payload: row.payload });
      }
    },
    get(key) {
      const revision = revisions.get(nameOf(key));
      if (revision === undefined) throw new Error(`revision ${nameOf(key)} is not loaded`);
      return revision;
    },
    work(key) {
      return this.get(key).definition;
    },
    rule(definition) {
      // Bursts share rules: thousands of schedules say the same few things.
      const text = JSON.stringify(definition.rule);
      let compiled = rules.get(text);
      if (compiled === undefined) {
        compiled = compileRule(definition.rule, zones);
        rules.set(text, compiled);
      }
      return compiled;
    },
  };
}
