import { readServer } from "../../authority/server.ts";
import { PunctualError } from "../../kernel/errors.ts";
import { type Check, finding, ok, skipped } from "./check.ts";
import { isStandby } from "./standby.ts";

export const epochCheck: Check = {
  id: "server",
  name: "the server is the one that was recorded",
  async examine({ db }) {
    if (await isStandby(db)) return skipped("a standby is asked: its timeline is not told while it follows another");
    try {
      const { epoch } = await readServer(db, 0);
      return ok(`epoch ${epoch}, same system and timeline`);
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
      const todo =
        error.code === "not-migrated" ? "run `punctual migrate`" : "run `punctual recover` before work goes on";
      return finding(error.message, "no work is given out and no effect is sent", todo, [error.details]);
    }
  },
};
