import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { type ParsedMail, simpleParser } from "mailparser";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEmailAdapter } from "../../../src/handlers/effects/email.ts";
import type { SmtpServer } from "../../../src/handlers/effects/smtp.ts";
import { operatorError } from "../../../src/kernel/errors.ts";
import { outgoing, patient } from "./outgoing.ts";

const EMAIL = {
  name: "mail",
  kind: "email",
  to: ["ada@example.com", "bob@example.com"],
  cc: ["eve@example.com"],
  subject: "{{schedule.name}} of {{run.scheduledAt}}",
  text: "See {{result.url}} ({{result.size}} bytes)",
};

/** A real mail server, in the clear unless it is told otherwise. */
async function mailServer(options: SMTPServerOptions = {}): Promise<{ port: number; mails: ParsedMail[] }> {
  const mails: ParsedMail[] = [];
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS", "AUTH"],
    authOptional: true,
    logger: false,
    onData(stream, _session, done) {
      simpleParser(stream).then((mail) => {
        mails.push(mail);
        done();
      }, done);
    },
    ...options,
  });
  server.on("error", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return { port: (server.server.address() as AddressInfo).port, mails };
}

/** A mail server by the letter: what it answers to each line, and where it hangs up. */
async function scripted(answer: (line: string, socket: Socket) => string | undefined): Promise<number> {
  const server: NetServer = createServer((socket) => {
    socket.on("error", () => undefined);
    let inData = false;
    let rest = "";
    socket.write("220 scripted\r\n");
    socket.on("data", (chunk) => {
      rest += chunk;
      for (let end = rest.indexOf("\r\n"); end >= 0; end = rest.indexOf("\r\n")) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        if (inData && line !== ".") continue;
        const said = answer(inData ? "<end>" : line, socket);
        inData = said?.startsWith("354") === true;
        if (said !== undefined) socket.write(`${said}\r\n`);
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** What an ordinary server says, but where `answer` says something else. */
function ordinary(answer: (line: string, socket: Socket) => string | undefined | null) {
  return (line: string, socket: Socket) => {
    const said = answer(line, socket);
    if (said !== null) return said;
    if (line === "DATA") return "354 go on";
    return "250 ok";
  };
}

function adapterFor(port: number, change: Partial<SmtpServer> = {}) {
  return createEmailAdapter({
    server: { host: "127.0.0.1", port, secure: false, startTls: "off", auth: undefined, silenceMs: 2_000, ...change },
    from: "Punctual <punctual@example.com>",
    concurrency: 5,
  });
}

describe("an email", () => {
  it("arrives with its run's facts, a one-line subject, and a Message-ID that never changes", async () => {
    const { port, mails } = await mailServer();
    const adapter = adapterFor(port);
    const sent = await adapter.send(outgoing(EMAIL), patient());
    expect(sent).toMatchObject({ kind: "sent", message: null, externalId: expect.stringContaining("250") });
    await adapter.send(outgoing(EMAIL), patient());
    expect(mails.map((mail) => [mail.messageId, mail.date])).toEqual([
      ["<mail-run_01@example.com>", new Date("2026-11-30T14:00:02Z")],
      ["<mail-run_01@example.com>", new Date("2026-11-30T14:00:02Z")],
    ]);
    const [mail] = mails as [ParsedMail];
    expect(mail.subject).toBe("Sales report of 2026-11-30T14:00:00Z");
    expect(mail.text).toBe("See https://punctual.example.com/v1/objects/run_01?x=1 (12 bytes)\n");
    expect(mail.from?.text).toContain("punctual@example.com");
    expect([mail.to].flat().map((one) => one?.text)).toEqual(["ada@example.com, bob@example.com"]);
    expect(mail.attachments).toEqual([]);
  });

  it("carries the result along where it was asked to", async () => {
    const { port, mails } = await mailServer();
    await adapterFor(port).send(outgoing({ ...EMAIL, result: "attach" }), patient());
    expect(mails[0]!.attachments).toMatchObject([
      { filename: "run_01.html", contentType: "text/html", content: Buffer.from("<p>report</p>") },
    ]);
  });

  it("whose result is gone is refused for good, and for the moment where the store does not answer", async () => {
    const { port } = await mailServer();
    const lost = (code: string) => ({
      openResult: async () => {
        throw operatorError(code, "no bytes");
      },
    });
    const effect = { ...EMAIL, result: "attach" };
    expect(await adapterFor(port).send(outgoing(effect, lost("object-missing")), patient())).toMatchObject({
      kind: "refused",
      transient: false,
    });
    expect(await adapterFor(port).send(outgoing(effect, lost("no-permission")), patient())).toMatchObject({
      kind: "refused",
      transient: true,
    });
  });

  it("that not all recipients may have is sent, and says who may not", async () => {
    const { port, mails } = await mailServer({
      onRcptTo: (address, _session, done) =>
        done(address.address === "bob@example.com" ? new Error("no bob here") : null),
    });
    const sent = await adapterFor(port).send(outgoing(EMAIL), patient());
    expect(sent).toMatchObject({ kind: "sent", message: expect.stringMatching(/bob@example.com.*no bob here/) });
    expect(mails).toHaveLength(1);
  });

  it("logs in, also over TLS from the first byte", async () => {
    let user: string | undefined;
    const { port } = await mailServer({
      secure: true,
      disabledCommands: [],
      authOptional: false,
      onAuth(auth, _session, done) {
        user = auth.username;
        done(auth.password === "secret" ? null : new Error("bad login"), { user: auth.username });
      },
    });
    const tls = { rejectUnauthorized: false };
    const right = adapterFor(port, { secure: true, auth: { user: "app", pass: "secret" }, tls });
    expect(await right.send(outgoing(EMAIL), patient())).toMatchObject({ kind: "sent" });
    expect(user).toBe("app");
    // Somebody will mend the configuration: the email waits.
    const wrong = adapterFor(port, { secure: true, auth: { user: "app", pass: "other" }, tls });
    expect(await wrong.send(outgoing(EMAIL), patient())).toMatchObject({ kind: "refused", transient: true });
  });
});

describe("before the server has asked for the message, nothing can have happened", () => {
  it("nobody listens", async () => {
    expect(await adapterFor(1).send(outgoing(EMAIL), patient())).toMatchObject({ kind: "refused", transient: true });
  });

  it.each([
    ["421 at the greeting to come", "EHLO", "421 4.3.2 closing"],
    ["451 to the sender", "MAIL", "451 4.3.0 later"],
    ["450 to all recipients", "RCPT", "450 4.2.1 mailbox busy"],
    ["452 to DATA", "DATA", "452 4.3.1 no room"],
  ])("%s: later", async (_name, command, reply) => {
    const port = await scripted(ordinary((line) => (line.startsWith(command) ? reply : null)));
    expect(await adapterFor(port).send(outgoing(EMAIL), patient())).toMatchObject({
      kind: "refused",
      transient: true,
      message: expect.stringContaining(reply),
    });
  });

  it.each([
    ["to the sender", "MAIL", "550 5.7.1 not you"],
    ["to all recipients", "RCPT", "550 5.1.1 nobody"],
    ["to DATA", "DATA", "554 5.5.1 no"],
  ])("5xx %s: never", async (_name, command, reply) => {
    const port = await scripted(ordinary((line) => (line.startsWith(command) ? reply : null)));
    expect(await adapterFor(port).send(outgoing(EMAIL), patient())).toMatchObject({
      kind: "refused",
      transient: false,
    });
  });

  it.each(["EHLO", "MAIL", "RCPT", "DATA"])("the connection is lost at %s: later", async (command) => {
    const port = await scripted(
      ordinary((line, socket) => {
        if (!line.startsWith(command)) return null;
        socket.destroy();
        return undefined;
      }),
    );
    expect(await adapterFor(port).send(outgoing(EMAIL), patient())).toMatchObject({ kind: "refused", transient: true });
  });

  it("the server falls silent: later", async () => {
    const port = await scripted(ordinary((line) => (line.startsWith("RCPT") ? undefined : null)));
    const adapter = adapterFor(port, { silenceMs: 200 });
    expect(await adapter.send(outgoing(EMAIL), patient())).toMatchObject({ kind: "refused", transient: true });
  });

  it("TLS is required and not offered, or its certificate is nobody's: later, and not a word of it in the clear", async () => {
    const said: string[] = [];
    const plain = await scripted(
      ordinary((line) => {
        said.push(line);
        return null;
      }),
    );
    expect(await adapterFor(plain, { startTls: "required" }).send(outgoing(EMAIL), patient())).toMatchObject({
      kind: "refused",
      transient: true,
    });
    expect(said.filter((line) => /MAIL|RCPT|DATA/.test(line))).toEqual([]);

    const { port, mails } = await mailServer({ disabledCommands: [] });
    expect(await adapterFor(port, { startTls: "required" }).send(outgoing(EMAIL), patient())).toMatchObject({
      kind: "refused",
      transient: true,
    });
    expect(mails).toEqual([]);
  });
});

describe("once the message was handed over, only an answer tells", () => {
  it("the connection is lost after the last line: nobody knows", async () => {
    let arrived = false;
    const port = await scripted(
      ordinary((line, socket) => {
        if (line !== "<end>") return null;
        arrived = true;
        socket.destroy();
        return undefined;
      }),
    );
    const said = await adapterFor(port).send(outgoing(EMAIL), patient());
    expect([said.kind, arrived]).toEqual(["unknown", true]);
  });

  it("the server falls silent after the last line: nobody knows", async () => {
    const port = await scripted(ordinary((line) => (line === "<end>" ? undefined : null)));
    expect(await adapterFor(port, { silenceMs: 200 }).send(outgoing(EMAIL), patient())).toMatchObject({
      kind: "unknown",
    });
  });

  it("the sender is told to stop after the last line: nobody knows", async () => {
    const stop = new AbortController();
    const port = await scripted(
      ordinary((line) => {
        if (line !== "<end>") return null;
        stop.abort();
        return undefined;
      }),
    );
    expect(await adapterFor(port).send(outgoing(EMAIL), stop.signal)).toMatchObject({ kind: "unknown" });
  });

  it.each([
    ["451 4.3.0 try again", true],
    ["552 5.3.4 too big", false],
  ])("%s: it did not happen", async (reply, transient) => {
    const port = await scripted(ordinary((line) => (line === "<end>" ? reply : null)));
    expect(await adapterFor(port).send(outgoing(EMAIL), patient())).toMatchObject({ kind: "refused", transient });
  });
});
