import { AMQPClient } from "@cloudamqp/amqp-client";

/** Takes runs from the queue "invoices". */
export async function consumeInvoices(
  url: string,
  send: (invoice: string, key: string) => Promise<void>,
): Promise<AMQPClient> {
  const client = new AMQPClient(url);
  await client.connect();
  const channel = await client.channel();
  await channel.basicQos(10);
  await channel.basicConsume("invoices", { noAck: false }, async (message) => {
    const headers = message.properties.headers as Record<string, string>;
    const until = headers["x-punctual-callback-until"];
    // Nobody waits for this attempt any more: the next one is a message of its own.
    if (until !== undefined && Date.parse(until) <= Date.now()) return message.ack();
    try {
      await send(JSON.parse(message.bodyString()!).invoice, headers["x-punctual-idempotency-key"]!);
      if (headers["x-punctual-callback-url"] !== undefined) await sayItIsDone(headers);
      await message.ack();
    } catch {
      await message.nack(true);
    }
  });
  return client;
}

async function sayItIsDone(headers: Record<string, string>): Promise<void> {
  const answer = await fetch(`${headers["x-punctual-callback-url"]}/complete`, {
    method: "POST",
    headers: { authorization: `Bearer ${headers["x-punctual-callback-token"]}`, "content-type": "application/json" },
    body: "{}",
  });
  // 409: another attempt has the run, or it has ended. It is no longer for us to say anything.
  if (!answer.ok && answer.status !== 409) throw new Error(`Punctual answered ${answer.status}`);
}
