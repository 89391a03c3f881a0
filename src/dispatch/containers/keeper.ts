import type { Authority } from "../../authority/authority.ts";
import { type Holder, readHolders } from "../../authority/containers/holders.ts";
import { isRecordedServer } from "../../authority/server.ts";
import { type ContainerEngine, type FoundContainer, isUnavailable } from "../../handlers/containers/engine.ts";
import { messageOf, operatorError } from "../../kernel/errors.ts";
import { readId } from "../../kernel/ids.ts";
import type { Pass } from "../../kernel/loop.ts";

const EVERY_MS = 2_000;
const IDLE_MS = 10_000;
/** Most that one pass clears away; the rest is for the next, which follows at once. */
const MOST_CLEARED = 20;

/** @throws an operator's error where the engine is away: it is for nobody else to start it. */
async function listed(engine: ContainerEngine, installation: string): Promise<FoundContainer[]> {
  try {
    return await engine.list(installation);
  } catch (error) {
    throw isUnavailable(error) ? operatorError("engine-unavailable", messageOf(error), {}, error) : error;
  }
}

/**
 * Looks after the containers that no worker is at work on: those of detached attempts are adopted, as far as there are
 * slots, and those of attempts that are over are cleared away. It lists first and asks then: a container is never older
 * than the claim it was made for, so one whose fence is not the present one now has been left behind. A copy of the
 * database that nobody has recovered touches nothing: the engine may be its original's too.
 */
export function createContainerKeeper(options: {
  authority: Authority;
  /** The engine, and by what mark its containers are ours. */
  open(): Promise<{ engine: ContainerEngine; installation: string }>;
  /** Takes detached attempts over; answers how many. */
  adopt(wanted: readonly Holder[]): Promise<number>;
}): Pass {
  const { authority, open, adopt } = options;
  const { log, metrics } = authority;

  async function clear(engine: ContainerEngine, { id, identity, phase }: FoundContainer): Promise<boolean> {
    const { run, attempt, fence } = identity;
    try {
      if (phase === "running") await engine.stop(id, 0);
      await engine.remove(id);
    } catch (error) {
      log.warn(
        { run, attempt, reason: messageOf(error) },
        "a container of an attempt that is over could not be removed",
      );
      return false;
    }
    metrics.containersCleared.inc();
    log.info({ run, attempt, fence: String(fence), phase }, "a container of an attempt that is over was removed");
    return true;
  }

  async function pass(signal: AbortSignal) {
    if (!(await isRecordedServer(authority.db))) return { did: 0, more: false };
    const { engine, installation } = await open();
    const found = (await listed(engine, installation)).flatMap((container) => {
      const runId = readId("run", container.identity.run);
      return runId === undefined ? [] : [{ container, runId }];
    });
    const holders = await readHolders(
      authority,
      found.map((one) => one.runId),
    );
    const detached: Holder[] = [];
    const left: FoundContainer[] = [];
    for (const { container, runId } of found) {
      const holder = holders.get(runId);
      if (holder?.fence !== container.identity.fence) left.push(container);
      else if (holder.worker === null && container.phase !== "created") detached.push(holder);
    }
    const adopted = detached.length === 0 ? 0 : await adopt(detached);
    metrics.containersAdopted.inc(adopted);
    let cleared = 0;
    // One that cannot be removed is in the way of no other.
    for (const container of left) {
      if (signal.aborted || cleared === MOST_CLEARED) break;
      if (await clear(engine, container)) cleared++;
    }
    return { did: adopted + cleared, more: cleared === MOST_CLEARED };
  }

  return { name: "container-keeper", everyMs: EVERY_MS, idleMs: IDLE_MS, pass };
}
