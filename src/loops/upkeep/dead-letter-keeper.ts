import type { Authority } from "../../authority/authority.ts";
import { forgetOldLetters } from "../../authority/dead-letters/keep.ts";
import type { Pass } from "../../kernel/loop.ts";

const BATCH = 1_000;
const EVERY_MS = 3_600_000;

/** Forgets dead letters that a person resolved long ago. */
export function createDeadLetterKeeper(options: { authority: Authority }): Pass {
  const { authority } = options;
  return {
    name: "dead-letter-keeper",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const did = await forgetOldLetters(authority, BATCH);
      if (did > 0) authority.log.info({ did }, "dead letters that were resolved long ago were forgotten");
      return { did, more: did === BATCH };
    },
  };
}
