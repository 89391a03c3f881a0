import type { Config } from "../config.ts";

/**
 * Makes a command's action: reads the configuration only once the command is known, and keeps its exit code (0 when it
 * answers none). Arguments follow the options, since commands have at most one.
 */
export type Act = <Options>(
  action: (config: Config, options: Options, argument: string) => Promise<unknown>,
) => (...args: unknown[]) => Promise<void>;

export function createAct(readSettings: () => Config, keep: (exitCode: number) => void): Act {
  return (action) =>
    async (...args) => {
      // Commander's order: arguments, options, the command itself.
      const options = args.at(-2) as never;
      const exitCode = await action(readSettings(), options, String(args[0] ?? ""));
      if (typeof exitCode === "number") keep(exitCode);
    };
}
