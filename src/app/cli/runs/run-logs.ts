import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import type { Client } from "../../../client/client.ts";
import type { RunLog } from "../../../client/logs.ts";
import { systemClock } from "../../../kernel/clock.ts";
import type { Act } from "../act.ts";
import { readWhole } from "../deadline.ts";
import { printJson, printNote, visible } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { withFinalNewline } from "./run-result.ts";

type LogsOptions = ClientOptions & { attempt?: string; tail?: string; follow?: boolean };

const LOOK_MS = 1_000;
/** The last words of an attempt are stored some moments after its end. */
const LAST_WORDS_MS = 3_000;

export function logsCommand(group: Command, act: Act): void {
  withClientOptions(group.command("logs <run>").description("print what an attempt of a run has said"))
    .option("--attempt <n>", "of this attempt (default: the latest)")
    .option("--tail <bytes>", "at most so many bytes of its end")
    .option("--follow", "go on printing until the attempt has ended")
    .action(
      act(async (config, { attempt, tail, follow, ...options }: LogsOptions, id: string) => {
        const { runs } = clientFor(options, config);
        const first = await runs.logs(id, {
          ...(attempt === undefined ? {} : { attempt: readWhole("--attempt", attempt, 1e6) }),
          ...(tail === undefined ? {} : { tailBytes: readWhole("--tail", tail, 1e6) }),
        });
        const show = options.json ? showJson : showText;
        if (follow) return followLog(runs, id, first, show);
        if (first.nextByte === 0 && !options.json) {
          printNote(first.attempt === 0 ? "No attempt yet." : `Attempt ${first.attempt} has said nothing.`);
        }
        return show(process.stdout.isTTY && !options.json ? { ...first, text: withFinalNewline(first.text) } : first);
      }),
    );
}

type Show = (log: RunLog) => Promise<void>;

const showText: Show = ({ text }) =>
  pipeline(process.stdout.isTTY ? harmless(text) : text, process.stdout, { end: false });

/** What a job has printed may hold commands for a terminal: they are shown, as everywhere. */
async function* harmless(text: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of text) {
    const lines = decoder.decode(chunk, { stream: true }).split(/(\r?\n|\t)/);
    yield lines.map((line, i) => (i % 2 === 1 ? line : visible(line))).join("");
  }
}

/** One line for every part that comes. */
const showJson: Show = async ({ attempt, nextByte, text }) => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of text) chunks.push(chunk);
  if (chunks.length > 0) printJson({ attempt, nextByte, text: Buffer.concat(chunks).toString() });
};

/** Prints what comes, of the attempt that it began with or of the first one. */
async function followLog(runs: Client["runs"], run: string, first: RunLog, show: Show): Promise<void> {
  await show(first);
  let { attempt, nextByte } = first;
  let endedMs: number | undefined;
  while (endedMs === undefined || systemClock.monotonic() < endedMs + LAST_WORDS_MS) {
    await systemClock.sleep(LOOK_MS);
    if (endedMs === undefined && (await hasEnded(runs, run, attempt))) endedMs = systemClock.monotonic();
    const more = await runs.logs(run, { ...(attempt === 0 ? {} : { attempt }), fromByte: nextByte });
    await show(more);
    ({ attempt, nextByte } = more);
  }
}

async function hasEnded(runs: Client["runs"], run: string, attempt: number): Promise<boolean> {
  if (attempt === 0) return (await runs.get(run)).finishedAt !== null;
  const found = (await runs.attempts(run)).find((one) => one.attempt === attempt);
  return found === undefined || found.endedAt !== null;
}
