import { JobFailed } from "../../src/client/worker/job.ts";
import { PunctualWorker } from "../../src/client/worker/punctual-worker.ts";

export const reports = new PunctualWorker({
  url: "https://punctual.example.com",
  key: process.env.PUNCTUAL_KEY!,
  concurrency: 4,
  jobs: {
    async "report.monthly@1"(ctx, { account }) {
      await ctx.log(`asking the bank for ${account}\n`);
      const answer = await fetch(`https://bank.example.com/${account}?at=${ctx.run.scheduledAt}`, {
        headers: { "idempotency-key": ctx.run.idempotencyKey },
        signal: ctx.signal,
      });
      if (answer.status === 404) throw new JobFailed("no-such-account", `no account ${account}`, { transient: false });
      return ctx.output("monthly.csv", new Uint8Array(await answer.arrayBuffer()), "text/csv");
    },
    async "report.film@1"(ctx, { film }) {
      const callback = await ctx.detach({ callbackWithinMs: 3_600_000 });
      // From here on only who has the callback says how it ends; here still we do, if nobody takes the work.
      const say = (url: string, body: object, headers = {}) =>
        fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(body),
        });
      const taken = await say("https://studio.example.com/films", { film, callback }).catch(() => undefined);
      if (taken?.ok) return;
      const failure = { code: "studio-away", message: "the studio took no work", transient: true };
      await say(`${callback.url}/fail`, failure, { authorization: `Bearer ${callback.token}` });
    },
  },
});
