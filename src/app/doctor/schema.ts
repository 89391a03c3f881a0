import { PunctualError } from "../../kernel/errors.ts";
import { assertSchemaFits } from "../../store/schema-fit.ts";
import { type Check, finding, ok } from "./check.ts";

export const schemaCheck: Check = {
  id: "schema",
  name: "the schema fits this program",
  async examine({ db }) {
    try {
      await assertSchemaFits(db);
      return ok("every migration is applied");
    } catch (error) {
      if (!(error instanceof PunctualError)) throw error;
      return finding(
        error.message,
        "no process of this program can work on this database",
        error.code === "schema-too-old" ? "run `punctual migrate`" : "use the program that fits the database",
      );
    }
  },
};
