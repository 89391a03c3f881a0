import { completeRuns } from "../authority/attempts/complete.ts";
import { type Detachment, type DetachOutcome, detachRuns } from "../authority/attempts/detach.ts";
import { type FailOutcome, type FailureReport, failRuns } from "../authority/attempts/fail.ts";
import { type Release, type ReleaseOutcome, releaseRuns } from "../authority/attempts/release.ts";
import type { Authority } from "../authority/authority.ts";
import { isRefusedItem } from "../authority/refused-item.ts";
import type { Completion, CompletionOutcome } from "../domain/completion.ts";
import { type Batcher, createBatcher } from "../kernel/batcher.ts";
import { insist } from "./insist.ts";

const MOST_PER_BATCH = 300;
const LANES = 1;

/** How attempts end, or leave their worker, in group commits. A lost reply is answered by saying the same again. */
export type Reports = {
  complete(completion: Completion): Promise<CompletionOutcome>;
  fail(report: FailureReport): Promise<FailOutcome>;
  release(release: Release): Promise<ReleaseOutcome>;
  detach(detachment: Detachment): Promise<DetachOutcome>;
  drain(): Promise<void>;
};

/** When `ending` aborts, a report that gets no answer is given up instead of repeated. */
export function createReports(authority: Authority, ending: AbortSignal): Reports {
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
  const detachments = batcherOf(detachRuns);

  const said = <Item, Outcome>(batcher: Batcher<Item, Outcome>, item: Item) =>
    insist(authority, { ending, untilMs: Number.POSITIVE_INFINITY }, () => batcher.submit(item));

  return {
    complete: (completion) => said(completions, completion),
    fail: (report) => said(failures, report),
    release: (release) => said(releases, release),
    detach: (detachment) => said(detachments, detachment),
    async drain() {
      await Promise.all([completions, failures, releases, detachments].map((batcher) => batcher.drain()));
    },
  };
}
