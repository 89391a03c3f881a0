/**
 * Fault points: named places where a test may hold a transaction still or make it fail. In production the table is
 * empty and `reach` costs one map look-up. Tests hang code on a name instead of sleeping to win a race.
 */
export type FaultPoints = {
  reach(name: string): Promise<void> | undefined;
};

export type TestFaultPoints = FaultPoints & {
  /** Runs `action` the next time `name` is reached (once). */
  once(name: string, action: () => Promise<void> | void): void;
  /** Holds the next arrival at `name`; `arrived` resolves when someone is there, `release` lets it go. */
  hold(name: string): { arrived: Promise<void>; release(): void };
};

export const noFaults: FaultPoints = { reach: () => undefined };

export function createFaultPoints(): TestFaultPoints {
  const actions = new Map<string, (() => Promise<void> | void)[]>();
  const once = (name: string, action: () => Promise<void> | void) => {
    actions.set(name, [...(actions.get(name) ?? []), action]);
  };
  return {
    once,
    reach(name) {
      const action = actions.get(name)?.shift();
      return action === undefined ? undefined : Promise.resolve(action());
    },
    hold(name) {
      const arrival = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      once(name, () => {
        arrival.resolve();
        return gate.promise;
      });
      return { arrived: arrival.promise, release: () => gate.resolve() };
    },
  };
}
