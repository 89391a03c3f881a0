import { readServer } from "../../authority/server.ts";
import { PunctualError } from "../../kernel/errors.ts";
import { type Check, finding, ok } from "./check.ts";

export const epochCheck: Check = {
  name: "the server is the one that was recorded",
  async examine({ db }) {
    try {
      const { epoch } = await readServer(db, 0);
      return ok(`epoch ${epoch}, same system and timeline`);
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
      const todo =
        error.code === "not-migrated" ? "run `punctual migrate`" : "run `punctual recover` before work goes on";
      return finding(error.message, todo, [error.details]);
    }
  },
};
