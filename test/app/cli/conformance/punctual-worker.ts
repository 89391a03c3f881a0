import { JobFailed } from "../../../../src/client/worker/job.ts";
import { PunctualWorker } from "../../../../src/client/worker/punctual-worker.ts";

/** PunctualWorker with the jobs that conformance asks for, as a process of its own. */
const worker = new PunctualWorker({
  url: process.env.PUNCTUAL_URL!,
  key: process.env.PUNCTUAL_KEY!,
  concurrency: 2,
  waitMs: 2_000,
  log: (message, fields) => console.error(message, fields),
  jobs: {
    "conformance.echo@1": (ctx, { text }) => ctx.output("echo.txt", String(text), "text/plain"),
    async "conformance.fail@1"(_ctx, { code, message, transient }) {
      throw new JobFailed(String(code), String(message), { transient: Boolean(transient) });
    },
    async "conformance.slow@1"(ctx, { seconds }) {
      await new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, Number(seconds) * 1_000);
        ctx.signal.addEventListener("abort", () => {
          clearTimeout(timer);
          reject(new Error(`told to stop: ${ctx.signal.reason}`));
        });
      });
    },
  },
});
worker.start();
process.once("SIGTERM", () => void worker.stop());
