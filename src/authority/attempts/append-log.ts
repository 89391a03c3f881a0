import type { Fence } from "../../domain/fence.ts";
import { mayAppend, nextPart, partsToDrop } from "../../domain/logs/attempt-log.ts";
import type { Uuid } from "../../kernel/ids.ts";
import {
  dropParts,
  insertLogObjects,
  insertParts,
  type KeptPart,
  lockParts,
  readLoggedAttempts,
} from "../../store/rows/logs/attempt-logs.ts";
import { markDeleting } from "../../store/rows/objects/going.ts";
import { lockObjects } from "../../store/rows/objects/objects.ts";
import type { Authority } from "../authority.ts";

/** A part of an attempt's log whose bytes are stored; `skipped` bytes before it were lost. */
export type StoredLogPart = {
  runId: Uuid;
  attempt: number;
  fence: Fence;
  objectId: Uuid;
  name: string;
  uri: string;
  version: string;
  sha256: string;
  size: number;
  skipped: number;
};

export type LogAppended =
  | { kind: "appended" }
  /** It is no log of this fence, or its attempt has ended for long: the bytes are nobody's. */
  | { kind: "stale-fence" }
  /** Another part came in between: to be said again. */
  | { kind: "busy" };

/**
 * Adds parts to the logs of attempts, and drops the oldest of what is then too much. At most one part of an attempt.
 * Locks   these logs, by name; their parts, in their order; objects that are dropped. Of the runs nothing: a log is in nobody's way.
 * Time    authority time, after the locks.
 * Writes  object (a part is referenced from the first), attempt_log; what is dropped → deleting.
 * Replay  the same object: appended, nothing written.
 */
export function appendLogs(
  authority: Authority,
  stored: readonly StoredLogPart[],
  limitBytes: number,
): Promise<readonly LogAppended[]> {
  return authority.transact("append-log", async (tx) => {
    const known = Map.groupBy(await lockParts(tx, stored), keyOf);
    const attempts = new Map((await readLoggedAttempts(tx, stored)).map((one) => [keyOf(one), one]));
    const nowAt = await tx.authorityNow();

    const outcomes = stored.map((part): LogAppended | KeptPart => {
      const parts = known.get(keyOf(part)) ?? [];
      if (parts.some((one) => one.objectId === part.objectId)) return { kind: "appended" };
      if (!mayAppend(attempts.get(keyOf(part)), part.fence, nowAt)) return { kind: "stale-fence" };
      const { runId, attempt, objectId } = part;
      return { runId, attempt, objectId, ...nextPart(parts.at(-1), part.size, part.skipped) };
    });

    const wanted = outcomes.filter((one) => "objectId" in one);
    const taken = wanted.length === 0 ? new Set<Uuid>() : await insertParts(tx, wanted, nowAt);
    const written = wanted.filter((one) => taken.has(one.objectId));
    const objects = stored.filter((one) => taken.has(one.objectId));
    await insertLogObjects(
      tx,
      objects.map((part) => ({ ...part, id: part.objectId, tenantId: attempts.get(keyOf(part))!.tenantId })),
      nowAt,
    );
    const dropped = written.flatMap((part) => {
      const parts: KeptPart[] = [...(known.get(keyOf(part)) ?? []), part];
      const numbers = new Set(partsToDrop(parts, limitBytes).map((one) => one.n));
      return parts.filter((one) => numbers.has(one.n));
    });
    await dropParts(tx, dropped);
    const leaving = await lockObjects(
      tx,
      dropped.map((one) => one.objectId),
    );
    const going = [...leaving.values()].filter((one) => one.state === "referenced");
    await markDeleting(
      tx,
      going.map((one) => one.id),
      nowAt,
    );
    return outcomes.map((one) => ("objectId" in one ? { kind: taken.has(one.objectId) ? "appended" : "busy" } : one));
  });
}

const keyOf = ({ runId, attempt }: { runId: Uuid; attempt: number }) => `${runId}/${attempt}`;
