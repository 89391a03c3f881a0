import type { Payload } from "../../domain/definition.ts";
import { type ContainerJob, MOST_TOGETHER, OWN_VARIABLES } from "../../domain/jobs/container.ts";
import { fillText, roomFor } from "../../domain/jobs/template.ts";
import type { JobContext } from "../context.ts";
import { filledIn, jobFactsOf } from "../job-facts.ts";
import { permanentFailure } from "../outcome.ts";

/** The kernel takes no longer text as one argument or variable (MAX_ARG_STRLEN). */
const LONGEST_TEXT = 128 * 1024 - 1;

const notStartable = (why: string) => permanentFailure("container-not-startable", why);

/** What the container is started with. The payload comes opened, so this is where its secrets are. */
export type Environment = {
  command: readonly string[] | undefined;
  args: readonly string[] | undefined;
  env: Readonly<Record<string, string>>;
};

/** @throws JobFailure `container-not-startable` where what was filled in is no text that a process can be given. */
export function environmentOf(ctx: Pick<JobContext, "run">, job: ContainerJob, payload: Payload): Environment {
  const facts = jobFactsOf(ctx, payload);
  const { run } = facts;
  const own: Record<string, string> = {
    RUN: run.id,
    ATTEMPT: String(run.attempt),
    FENCE: run.fence,
    SCHEDULED_AT: run.scheduledAt,
    // The same for all attempts, as a run is one thing to the world.
    IDEMPOTENCY_KEY: run.id,
    PAYLOAD: JSON.stringify(payload),
  };
  const env: Record<string, string> = {};
  const room = roomFor(MOST_TOGETHER, "env, command and args together");
  const wordsOf = (field: string, words: readonly string[] | undefined) =>
    words?.map((text, i) => fillText(text, facts, room(`${field}[${i}]`)));
  const filled = filledIn(notStartable, () => {
    for (const [name, text] of Object.entries(job.env)) env[name] = fillText(text, facts, room(`env.${name}`));
    return { env, command: wordsOf("command", job.command), args: wordsOf("args", job.args) };
  });
  for (const [name, text] of Object.entries(own)) env[OWN_VARIABLES + name] = text;
  refuseUnfit(filled);
  return filled;
}

function refuseUnfit({ env, command = [], args = [] }: Environment): void {
  const named = [
    ...Object.entries(env).map(([name, text]) => ({ field: `env.${name}`, text: `${name}=${text}` })),
    ...command.map((text, i) => ({ field: `command[${i}]`, text })),
    ...args.map((text, i) => ({ field: `args[${i}]`, text })),
  ];
  for (const { field, text } of named) {
    const size = Buffer.byteLength(text);
    const fault = text.includes("\0")
      ? "has a NUL character, which no process can be given"
      : size > LONGEST_TEXT
        ? `has ${size} bytes; allowed: at most ${LONGEST_TEXT}`
        : undefined;
    if (fault !== undefined) throw notStartable(`${field}: as filled in it ${fault}`);
  }
}
