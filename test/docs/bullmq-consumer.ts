import { Worker } from "bullmq";

type Callback = { url: string; token: string; until: string };
type Data = { punctual: { idempotencyKey: string; callback?: Callback }; payload: { invoice: string } };

/** Takes runs from the queue "invoices". */
export function consumeInvoices(
  connection: { url: string },
  send: (invoice: string, key: string) => Promise<void>,
): Worker {
  return new Worker<Data>(
    "invoices",
    async ({ data: { punctual, payload } }) => {
      // Nobody waits for this attempt any more: the next one is a job of its own.
      if (punctual.callback !== undefined && Date.parse(punctual.callback.until) <= Date.now()) return;
      await send(payload.invoice, punctual.idempotencyKey);
      if (punctual.callback !== undefined) await sayItIsDone(punctual.callback);
    },
    { connection },
  );
}

async function sayItIsDone({ url, token }: Callback): Promise<void> {
  const answer = await fetch(`${url}/complete`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: "{}",
  });
  // 409: another attempt has the run, or it has ended. It is no longer for us to say anything.
  if (!answer.ok && answer.status !== 409) throw new Error(`Punctual answered ${answer.status}`);
}
