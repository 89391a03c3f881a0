import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printJson, printLine } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { showUtc } from "../words.ts";

export function cancelCommand(group: Command, act: Act): void {
  withClientOptions(group.command("cancel <run>").description("cancel a run; its worker is told if it runs")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const canceled = await clientFor(options, config).runs.cancel(id);
      if (options.json) return printJson(canceled);
      if (canceled.accepted) return printLine(`Canceled ${id}`);
      printLine(
        canceled.callbackDueAt === null
          ? `Asked for it; ${id} ends when its job heeds ctx.signal or its lease is over, and may still succeed if the job does not heed it`
          : `Asked for it; ${id} is with somebody else, who hears of it only by asking. It ends when they say so, or at ${showUtc(canceled.callbackDueAt)} at the latest; a /complete before that still counts`,
      );
    }),
  );
}
