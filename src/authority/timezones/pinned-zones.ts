import { AsyncLocalStorage } from "node:async_hooks";
import { LRUCache } from "lru-cache";
import type { Definition } from "../../domain/definition.ts";
import { compileRule } from "../../domain/recurrence/compile.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";

type Compilation = ReturnType<typeof compileRule>;

/** All that depends on the tz database, under one version of it. */
export type RuleBook = {
  readonly zones: ZoneSource;
  /** The compiled rule, or why it cannot be computed under this version. */
  rule(definition: Definition): Compilation;
};

/**
 * The version of the tz database this process goes by. It changes while the process runs, but never within a
 * transaction: what a transaction computes, and the version it writes beside it, are of one book, and no verb has to
 * think of it.
 */
export type PinnedZones = {
  /** Of the transaction this is called in; outside of one, the newest. */
  book(): RuleBook;
  /** Goes by other data from now on. A transaction that calls this has computed nothing yet; others end by their own. */
  turnTo(zones: ZoneSource): void;
  /** Work that goes by one book from its beginning to its end. */
  hold<T>(work: () => Promise<T>): Promise<T>;
  /** Versions that were opened before, for cursors that were planned by them. */
  readonly opened: LRUCache<string, ZoneSource>;
};

/** Data of other versions is needed for some time after an adoption, and then no more (about a megabyte each). */
const OPENED_AT_MOST = 6;

export function createPinnedZones(zones: ZoneSource): PinnedZones {
  let newest = bookOf(zones);
  // Not a parameter: every helper of every verb would have to hand it on, and one that forgot would mix versions.
  const held = new AsyncLocalStorage<{ book: RuleBook }>();
  const opened = new LRUCache<string, ZoneSource>({ max: OPENED_AT_MOST });
  return {
    opened,
    book: () => held.getStore()?.book ?? newest,
    turnTo(next) {
      opened.set(next.version, next);
      newest = bookOf(next);
      const store = held.getStore();
      if (store !== undefined) store.book = newest;
    },
    hold: (work) => held.run({ book: newest }, work),
  };
}

function bookOf(zones: ZoneSource): RuleBook {
  const compiled = new WeakMap<object, Compilation>();
  return {
    zones,
    rule(definition) {
      const known = compiled.get(definition.rule);
      if (known !== undefined) return known;
      const fresh = compileRule(definition.rule, zones);
      compiled.set(definition.rule, fresh);
      return fresh;
    },
  };
}
