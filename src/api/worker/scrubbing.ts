import { LRUCache } from "lru-cache";
import type { Authority } from "../../authority/authority.ts";
import { readPayloadSecrets } from "../../authority/secrets/payload-secrets.ts";
import { type KnownSecrets, SCRUBBED } from "../../domain/secrets/known.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { JobCatalogue } from "../job-catalogue.ts";

/** Takes the secrets of a run's payload out of what workers and callbacks say of it. */
export type Scrubbing = { of(attempt: { runId: Uuid }): Promise<KnownSecrets> };

const MOST_REMEMBERED = 1_000;

/** What was opened for a run is remembered, in this process alone: workers say many things of one run. */
export function createScrubbing(deps: { authority: Authority; jobs: JobCatalogue }): Scrubbing {
  const { authority, jobs } = deps;
  const known = new LRUCache<Uuid, KnownSecrets>({ max: MOST_REMEMBERED });
  return {
    async of({ runId }) {
      const before = known.get(runId);
      if (before !== undefined) return before;
      try {
        const secrets = await readPayloadSecrets(authority, runId, (job, plain) => jobs.findSecrets(job, plain));
        known.set(runId, secrets);
        return secrets;
      } catch (error) {
        if ((error as { code?: unknown }).code !== "secret-unavailable") throw error;
        authority.log.warn(
          { reason: messageOf(error) },
          "what is said of a run is not kept: its secrets cannot be known",
        );
        return EVERYTHING;
      }
    },
  };
}

/** Where nobody knows what is secret, everything is. */
const EVERYTHING: KnownSecrets = {
  count: 1,
  paths: [],
  scrub: () => SCRUBBED,
  scrubJson: () => SCRUBBED,
  scrubSettled: () => ({ settled: SCRUBBED, rest: "" }),
};
