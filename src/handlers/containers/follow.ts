import type { Exit } from "../../domain/containers/exit.ts";
import type { Clock } from "../../kernel/clock.ts";
import { permanentFailure, transientFailure } from "../outcome.ts";
import { type ContainerEngine, isUnavailable, type LogChunk } from "./engine.ts";
import type { LogReader } from "./log-reader.ts";

/** An engine that restarts is waited for so long; its containers may well go on meanwhile. */
const PATIENCE_MS = 60_000;
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;

/**
 * Waits for a container's end. Asks again and again rather than waiting for one long answer: an engine that restarts, or
 * hangs, costs nothing but time. Ends with the signal, which it throws.
 * @throws JobFailure `engine-unavailable`, `container-lost`; `result-too-large` for a log beyond `mostBytes`.
 */
export async function follow(
  engine: Pick<ContainerEngine, "phase">,
  id: string,
  options: { clock: Clock; signal: AbortSignal; log: LogReader; mostBytes: number },
): Promise<Exit> {
  const { clock, signal, log, mostBytes } = options;
  let answeredMs = clock.monotonic();
  for (let napMs = FIRST_LOOK_MS; ; napMs = Math.min(LAST_LOOK_MS, napMs * 1.5)) {
    signal.throwIfAborted();
    refuseTooMuch(log.total, mostBytes);
    try {
      const phase = await engine.phase(id);
      answeredMs = clock.monotonic();
      if (phase === undefined) throw containerLost();
      if (phase.kind === "ended") return phase.exit;
    } catch (error) {
      if (!isUnavailable(error) || clock.monotonic() - answeredMs > PATIENCE_MS) throw error;
    }
    await clock.sleep(napMs, log.pause.aborted ? signal : AbortSignal.any([signal, log.pause]));
  }
}

function containerLost(): Error {
  return transientFailure("container-lost", "the engine has lost the container, or somebody has removed it");
}

function refuseTooMuch(found: number, most: number): void {
  if (found > most) throw resultTooLarge(most);
}

export function resultTooLarge(most: number): Error {
  return permanentFailure("result-too-large", `the container wrote more than a result may have: ${most} bytes`);
}

/** One stream's bytes, not more than so many, and not less than were seen: an engine may have done away with some. */
export async function* onlyStdout(
  chunks: AsyncIterable<LogChunk>,
  mostBytes: number,
  leastBytes: number,
): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const { stream, bytes } of chunks) {
    if (stream !== "stdout") continue;
    total += bytes.length;
    refuseTooMuch(total, mostBytes);
    yield bytes;
  }
  if (total >= leastBytes) return;
  const message = `the engine has kept ${total} of the ${leastBytes} bytes that were written`;
  throw transientFailure("result-incomplete", message);
}
