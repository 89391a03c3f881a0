import fc from "fast-check";
import type { Reference } from "./reference.ts";
import { FATES, type Fate, type Stage } from "./stage.ts";

/** One command of a sequence, as fast-check draws, runs, shortens and prints it. */
export type Command = fc.AsyncCommand<{ reference: Reference }, Stage>;

/** A command: what may be drawn for it, when there is something to do, and what it does. */
export function command<Args extends object>(
  name: string,
  drawn: { [Name in keyof Args]: fc.Arbitrary<Args[Name]> },
  run: (stage: Stage, args: Args) => Promise<unknown>,
  check: (reference: Reference) => boolean = () => true,
): fc.Arbitrary<Command> {
  return fc.record(drawn).map(
    (args): Command => ({
      check: ({ reference }) => check(reference),
      run: async (_, stage) => {
        await run(stage, args as Args);
      },
      toString: () => `${name}(${JSON.stringify(args)})`,
    }),
  );
}

export const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 200, arbitrary: fc.constant(FATES[0]) },
  { weight: 20, arbitrary: fc.constant(FATES[1]) },
  { weight: 15, arbitrary: fc.constant(FATES[2]) },
  { weight: 1, arbitrary: fc.constant(FATES[3]) },
);

/** Draws an index into whatever there is when the command runs: `pick(list, n)`. */
export const some = fc.nat(50);
export const few = (most: number) => fc.array(some, { minLength: 1, maxLength: most });
export const seldom = fc.nat(9).map((n) => n === 9);

export function pick<T>(list: readonly T[], n: number): T {
  return list[n % list.length]!;
}

/** Newest first: what was born or granted last is where most things happen. */
export function pickNewest<T>(list: readonly T[], n: number): T {
  return list[list.length - 1 - (n % list.length)]!;
}
