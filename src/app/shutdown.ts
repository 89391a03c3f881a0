import { messageOf } from "../kernel/errors.ts";

/** A second signal so soon is the same one heard twice (terminal and parent); later it means "now". */
const SAME_SIGNAL_MS = 700;

/** Resolves with the reason when this process is asked to end: a signal, or its parent gone. A later second signal ends it at once. */
export function askedToEnd(): Promise<string> {
  return new Promise((resolve) => {
    let firstAtMs: number | undefined;
    const hear = (reason: string) => {
      if (firstAtMs === undefined) {
        firstAtMs = performance.now();
        resolve(reason);
      } else if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(130);
    };
    process.on("SIGINT", () => hear("SIGINT"));
    process.on("SIGTERM", () => hear("SIGTERM"));
    process.once("disconnect", () => hear("parent gone"));
    process.channel?.unref();
  });
}

/** Prints an error for a person: what happened and who must act; a stack only where the fault is ours. */
export function printError(error: unknown): void {
  const actor = (error as { actor?: unknown } | null)?.actor;
  if (actor === "operator" || actor === "caller") console.error(`punctual: ${messageOf(error)}`);
  else console.error("punctual:", error);
}
