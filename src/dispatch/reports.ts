import { completeRuns } from "../authority/attempts/complete.ts";
import { type FailOutcome, type FailureReport, failRuns } from "../authority/attempts/fail.ts";
import { type Release, type ReleaseOutcome, releaseRuns } from "../authority/attempts/release.ts";
import type { Authority } from "../authority/authority.ts";
import { isPoisonedItem, isRefusedItem } from "../authority/refused-item.ts";
import type { Completion, CompletionOutcome } from "../domain/completion.ts";
import { backoffMs } from "../kernel/backoff.ts";
import { type Batcher, createBatcher } from "../kernel/batcher.ts";
import { messageOf, PunctualError } from "../kernel/errors.ts";

const MOST_PER_BATCH = 300;
const LANES = 1;

/** How attempts end, in group commits. A lost reply is answered by saying the same again. */
export type Reports = {
  complete(completion: Completion): Promise<CompletionOutcome>;
  fail(report: FailureReport): Promise<FailOutcome>;
  release(release: Release): Promise<ReleaseOutcome>;
  drain(): Promise<void>;
  /** From now on a report that gets no answer is given up instead of repeated: the process is ending. */
  giveUp(): void;
};

export function createReports(authority: Authority): Reports {
  const { clock, log } = authority;
  const ending = new AbortController();
  const batcherOf = <Item, Outcome>(run: (a: Authority, items: readonly Item[]) => Promise<readonly Outcome[]>) =>
    createBatcher<Item, Outcome>({
      run: (items) => run(authority, items),
      maxItems: MOST_PER_BATCH,
      lanes: LANES,
      isPoison: isRefusedItem,
    });
  const completions = batcherOf(completeRuns);
  const failures = batcherOf(failRuns);
  const releases = batcherOf(releaseRuns);

  /** Says it again, with growing pauses, until there is an answer: fence and checksum make a repeat harmless. */
  async function insist<Item, Outcome>(batcher: Batcher<Item, Outcome>, item: Item): Promise<Outcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await batcher.submit(item);
      } catch (error) {
        const retryable = !(error instanceof PunctualError) || error.retryable || error.code === "database-unreachable";
        if (!retryable || isPoisonedItem(error) || ending.signal.aborted) throw error;
        log.warn({ tries, reason: messageOf(error) }, "a report got no answer and is said again");
        const pauseMs = backoffMs(tries, { baseMs: 100, capMs: 5_000, floorMs: 50 }, authority.chance());
        await clock.sleep(pauseMs, ending.signal);
      }
    }
  }

  return {
    complete: (completion) => insist(completions, completion),
    fail: (report) => insist(failures, report),
    release: (release) => insist(releases, release),
    async drain() {
      await Promise.all([completions.drain(), failures.drain(), releases.drain()]);
    },
    giveUp: () => ending.abort(),
  };
}
