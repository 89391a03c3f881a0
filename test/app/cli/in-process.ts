import { AsyncLocalStorage } from "node:async_hooks";
import { runCli } from "../../../src/app/cli/program.ts";
import type { Ended } from "./punctual.ts";

/** What commands write while they run here; several may run side by side. */
type Heard = { out: Buffer[]; err: Buffer[] };
const hearing = new AsyncLocalStorage<Heard>();

/**
 * A command in this process: what starts a process of its own (see punctual.ts) is shown by a few tests, and takes most of
 * the time of the others.
 */
export async function runHere(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const heard: Heard = { out: [], err: [] };
  listen();
  const exitCode = await hearing.run(heard, () => runCli(args, { PATH: process.env.PATH ?? "", ...env }));
  return { exitCode, out: Buffer.concat(heard.out).toString(), err: Buffer.concat(heard.err).toString() };
}

let isListening = false;

function listen(): void {
  if (isListening) return;
  isListening = true;
  for (const [stream, kind] of [
    [process.stdout, "out"],
    [process.stderr, "err"],
  ] as const) {
    const write = stream.write.bind(stream);
    stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      const heard = hearing.getStore();
      if (heard === undefined) return write(chunk as string, ...(rest as []));
      heard[kind].push(Buffer.from(chunk));
      for (const done of rest) if (typeof done === "function") process.nextTick(done as () => void);
      return true;
    }) as typeof stream.write;
  }
  for (const [name, kind] of [
    ["log", "out"],
    ["error", "err"],
  ] as const) {
    const say = console[name];
    console[name] = (...words: unknown[]) => {
      const heard = hearing.getStore();
      if (heard === undefined) say(...words);
      else heard[kind].push(Buffer.from(`${words.join(" ")}\n`));
    };
  }
}
