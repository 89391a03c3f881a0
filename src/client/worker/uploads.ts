import { createHash } from "node:crypto";
import { noAnswerOf } from "../http.ts";
import type { AttemptRef, StagedOutput, WorkerCalls } from "./calls.ts";
import type { WorkerClock } from "./clock.ts";
import { insist } from "./insist.ts";
import type { OutputBytes } from "./job.ts";

/** Smaller ones go through the API in one call; larger ones to the store itself, where it takes them. */
const BY_LINK_FROM_BYTES = 1_048_576;

type Held = AttemptRef & { worker: string };
type Named = { name: string; mediaType: string };

/** Uploads an output and stages it. What can be sent again is, until there is an answer. */
export async function uploadOutput(
  deps: { calls: WorkerCalls; clock: WorkerClock; signal: AbortSignal },
  held: Held,
  named: Named,
  given: OutputBytes,
): Promise<StagedOutput> {
  const { calls, clock, signal } = deps;
  if (typeof given === "function") {
    return insist(clock, signal, () => putStream(calls, held, named, given(), signal));
  }
  const bytes = typeof given === "string" ? new TextEncoder().encode(given) : given;
  if (!(bytes instanceof Uint8Array)) return putStream(calls, held, named, bytes, signal);
  if (bytes.byteLength < BY_LINK_FROM_BYTES)
    return insist(clock, signal, () => calls.put(held, { ...named, bytes }, signal));
  return insist(clock, signal, async () => {
    const { objectId, upload } = await calls.upload(held, named);
    if (upload === null) return calls.put(held, { ...named, bytes }, signal);
    await putByLink(upload, bytes, signal);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return calls.stage(held, { objectId, sha256, size: bytes.byteLength });
  });
}

/** What the source throws is thrown as it is: it is the job's own failure, and asking the API again would not help. */
async function putStream(
  calls: WorkerCalls,
  held: Held,
  named: Named,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<StagedOutput> {
  let broken: { error: unknown } | undefined;
  async function* watched() {
    try {
      yield* source;
    } catch (error) {
      broken = { error };
      throw error;
    }
  }
  try {
    return await calls.put(held, { ...named, bytes: ReadableStream.from(watched()) }, signal);
  } catch (error) {
    throw broken === undefined ? error : broken.error;
  }
}

async function putByLink(
  link: { url: string; headers: Record<string, string> },
  bytes: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<void> {
  const url = new URL(link.url);
  try {
    const answer = await fetch(url, { method: "PUT", headers: link.headers, body: bytes, signal });
    await answer.body?.cancel();
    // It is there already, by an upload whose end was not heard of: staging says whether it is this.
    if (!answer.ok && answer.status !== 412) throw new Error(`the link answers HTTP ${answer.status}`);
  } catch (error) {
    throw noAnswerOf(url, error);
  }
}
