import type { LetterFilter } from "../../../domain/dead-letters.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../../kernel/ids.ts";
import type { Queryable } from "../../../store/database.ts";
import { type LetterPlace, type WalkFilter, walkOpenLetters } from "../../../store/rows/dead-letters.ts";
import type { OperationRow } from "../../../store/rows/operations/operations.ts";

/** What an operation on dead letters was asked for. `until`: what came later is none of its business. */
export type LetterArguments = {
  scheduleId?: Uuid;
  class?: string;
  reason?: string;
  fingerprint?: string;
  from?: Instant;
  to?: Instant;
  until: Instant;
};

export function argumentsOf(filter: LetterFilter, until: Instant): LetterArguments {
  const { fromAt, toAt, ...rest } = filter;
  return {
    ...rest,
    ...(fromAt === undefined ? {} : { from: fromAt }),
    ...(toAt === undefined ? {} : { to: toAt }),
    until,
  };
}

/** The place before the first letter that a filter can mean. */
export function startOf(fromAt: Instant | undefined): LetterPlace {
  return { at: fromAt ?? 0, id: NIL_ID };
}

/** Where an operation's walk over letters goes on. */
export function placeOf({ cursor, arguments: args }: OperationRow): LetterPlace {
  if (cursor === null) return startOf((args as LetterArguments).from);
  const { at, id } = cursor as LetterPlace;
  return { at, id };
}

/** Letters that one step looks at, however few of them are meant. */
const MOST_WALKED = 1_000;

export type WalkedPart = {
  /** Letters that are meant, at most `limit`, each with its place. */
  meant: LetterPlace[];
  /** Where to go on once all of them are done; undefined: there are no more. */
  rest: LetterPlace | undefined;
};

/**
 * The next letters that an operation means, in the order of failures. What it has resolved is not found again, and what
 * has failed anew since it was asked for is younger than it. `part`: from elsewhere than its cursor, of some schedules only.
 */
export async function walkOn(
  tx: Queryable,
  operation: OperationRow,
  limit: number,
  part: { after?: LetterPlace; scheduleId?: Uuid; without?: readonly Uuid[] } = {},
): Promise<WalkedPart> {
  const { from: _, to, until, ...rest } = operation.arguments as LetterArguments;
  const { after = placeOf(operation), ...some } = part;
  const filter = { ...rest, ...some, toAt: Math.min(until, to ?? until) };
  return walkLetters(tx, operation.tenant_id, filter, after, limit, MOST_WALKED);
}

export async function walkLetters(
  tx: Queryable,
  tenantId: Uuid,
  filter: WalkFilter,
  after: LetterPlace,
  limit: number,
  most: number,
): Promise<WalkedPart> {
  const walked = await walkOpenLetters(tx, tenantId, filter, after, most);
  const meant: LetterPlace[] = [];
  for (const { run_id: id, created_at: at, fits } of walked) {
    if (!fits) continue;
    meant.push({ at, id });
    if (meant.length === limit) return { meant, rest: { at, id } };
  }
  const last = walked.at(-1);
  const isMore = walked.length === most && last !== undefined;
  return { meant, rest: isMore ? { at: last.created_at, id: last.run_id } : undefined };
}
