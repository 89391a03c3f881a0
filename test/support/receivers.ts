import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { type ParsedMail, simpleParser } from "mailparser";
import { SMTPServer } from "smtp-server";

/** The other sides of effects, for real: they remember what came, and `answer` says when and how they answer. */

export type Delivery = { key: string; headers: IncomingHttpHeaders; body: string };

export type WebhookReceiver = { url: string; calls: Delivery[]; close(): Promise<void> };

export async function webhookReceiver(
  answer: (call: Delivery, response: ServerResponse) => void = (_call, response) => void response.writeHead(204).end(),
): Promise<WebhookReceiver> {
  const calls: Delivery[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => "");
    const call = { key: String(request.headers["idempotency-key"]), headers: request.headers, body };
    calls.push(call);
    answer(call, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    calls,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

export type MailReceiver = { url: string; port: number; mails: ParsedMail[]; close(): Promise<void> };

/** Mail in the clear; a message is taken once `accept` resolves. */
export async function mailReceiver(
  accept: (mail: ParsedMail) => Promise<void> = async () => {},
): Promise<MailReceiver> {
  const mails: ParsedMail[] = [];
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS", "AUTH"],
    authOptional: true,
    logger: false,
    onData(stream, _session, done) {
      simpleParser(stream)
        .then((mail) => {
          mails.push(mail);
          return accept(mail);
        })
        .then(() => done(), done);
    },
  });
  server.on("error", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    mails,
    close: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}
