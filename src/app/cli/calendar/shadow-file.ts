import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { packInstants, type Shadow, unpackInstants } from "../../../domain/recurrence/adoption/shadow.ts";
import { type Rule, ruleSchema } from "../../../domain/recurrence/rule.ts";
import { messageOf } from "../../../kernel/errors.ts";
import { UsageError } from "../usage.ts";

/** What a release computed, for another to compare: a line that says by what and for when, and one for each rule. */

const headSchema = z.strictObject({
  punctual: z.literal("shadow 1"),
  release: z.string(),
  tzVersion: z.string(),
  from: z.int(),
  until: z.int(),
});
const lineSchema = z.strictObject({
  rule: ruleSchema,
  schedules: z.int(),
  example: z.string(),
  instants: z.string().optional(),
  fault: z.string().optional(),
});

export type ShadowHead = Omit<z.infer<typeof headSchema>, "punctual">;
export type ShadowLine = { rule: Rule; schedules: number; example: string; shadow: Shadow };

export function writeShadows(file: string, head: ShadowHead, lines: Iterable<ShadowLine>): number {
  const texts = [JSON.stringify({ punctual: "shadow 1", ...head })];
  for (const { shadow, ...line } of lines) {
    const { instants, fault } = shadow;
    texts.push(
      JSON.stringify({ ...line, ...(fault === undefined ? { instants: packInstants(instants) } : { fault }) }),
    );
  }
  writeFileSync(file, `${texts.join("\n")}\n`);
  return texts.length - 1;
}

/** Throws a usage error that names the file and the line. */
export function readShadows(file: string): { head: ShadowHead; lines: ShadowLine[] } {
  const [first = "", ...rest] = read(file).trimEnd().split("\n");
  const { punctual: _, ...head } = parse(file, 1, first, headSchema);
  const lines = rest.map((text, k): ShadowLine => {
    const { instants, fault, ...line } = parse(file, k + 2, text, lineSchema);
    if (fault !== undefined) return { ...line, shadow: { instants: [], fault } };
    try {
      return { ...line, shadow: { instants: unpackInstants(instants ?? "") } };
    } catch (error) {
      throw new UsageError(`--against: ${file} line ${k + 2}: instants: ${messageOf(error)}`);
    }
  });
  return { head, lines };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`--against: ${file} cannot be read (${messageOf(error)})`);
  }
}

function parse<T>(file: string, line: number, text: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError(`--against: ${file} line ${line}: is no JSON; allowed: a file that --write has written`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new UsageError(`--against: ${file} line ${line}: ${issue.path.join(".") || "line"}: ${issue.message}`);
}
