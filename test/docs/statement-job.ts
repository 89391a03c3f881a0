import { z } from "zod";
import { permanentFailure, transientFailure } from "../../src/handlers/outcome.ts";
import { defineJob } from "../../src/handlers/registry.ts";

export const fetchStatement = defineJob({
  name: "statement.fetch",
  version: 1,
  input: z.strictObject({ bank: z.url(), account: z.string() }),
  async run(ctx, { bank, account }) {
    const until = new Date(ctx.run.scheduledAt).toISOString();
    const answer = await fetch(`${bank}/${account}?until=${until}`, {
      headers: { "idempotency-key": ctx.run.id },
      signal: ctx.signal,
    });
    if (answer.status === 404) throw permanentFailure("no-such-account", `the bank does not know ${account}`);
    if (answer.status === 429) {
      const retryAfterMs = Number(answer.headers.get("retry-after")) * 1000;
      throw transientFailure("bank-busy", "the bank wants to be asked later", { retryAfterMs });
    }
    if (!answer.ok) throw new Error(`the bank answered ${answer.status}`);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return { output: { name: "statement.csv", mediaType: "text/csv", bytes } };
  },
});
