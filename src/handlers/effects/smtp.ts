import { Readable } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { SendReport } from "../../domain/effects/settlement.ts";

export type SmtpServer = {
  host: string;
  port: number;
  /** TLS from the first byte (smtps). */
  secure: boolean;
  /** STARTTLS on an open connection: `required`, used where it is offered, or never. */
  startTls: "required" | "opportunistic" | "off";
  auth: { user: string; pass: string } | undefined;
  /** Longest silence of the server. */
  silenceMs: number;
  tls?: ConnectionOptions;
};

type SmtpError = Error & { code?: string; responseCode?: number; command?: string };
type Sent = { accepted: string[]; rejected: string[]; rejectedErrors?: SmtpError[]; response: string };

/**
 * One message over one connection of its own. nodemailer's transports send over connections they keep, and may send
 * again on another one by themselves; here every byte of the message that leaves is known of: its stream is read only
 * once the server has asked for it (354).
 */
export function deliver(
  server: SmtpServer,
  envelope: { from: string; to: string[] },
  raw: Buffer,
  signal: AbortSignal,
): Promise<SendReport> {
  const message = Readable.from([raw], { objectMode: false });
  const connection = new SMTPConnection({
    host: server.host,
    port: server.port,
    secure: server.secure,
    requireTLS: !server.secure && server.startTls === "required",
    ignoreTLS: server.startTls === "off",
    connectionTimeout: server.silenceMs,
    greetingTimeout: server.silenceMs,
    socketTimeout: server.silenceMs,
    tls: { ...server.tls },
  });
  return new Promise((resolve) => {
    const end = (report: SendReport) => {
      signal.removeEventListener("abort", onAbort);
      resolve(report);
    };
    const fail = (error: Error) => {
      end(reportOf(error, message.readableDidRead));
      connection.close();
    };
    const onAbort = () => fail(new Error("it took too long, or the sender was asked to stop"));
    signal.addEventListener("abort", onAbort);
    connection.on("error", fail);
    if (signal.aborted) return onAbort();

    const send = () =>
      connection.send({ ...envelope, size: raw.length }, message, (error, info) => {
        if (error) return fail(error);
        end(sentReport(info as unknown as Sent));
        connection.quit();
      });
    connection.connect((error?: Error | null) => {
      if (error) return fail(error);
      if (server.auth === undefined) return send();
      connection.login({ ...server.auth, credentials: server.auth } as never, (refused: Error | null) =>
        refused ? fail(refused) : send(),
      );
    });
  });
}

function sentReport({ response, rejected, rejectedErrors = [] }: Sent): SendReport {
  const refused = rejectedErrors.map((error, i) => `${rejected[i] ?? ""}: ${error.message}`).join("; ");
  return {
    kind: "sent",
    externalId: response,
    message: rejected.length === 0 ? null : `not to all: ${refused === "" ? rejected.join(", ") : refused}`,
  };
}

/**
 * `begun`: the server had asked for the message, and some of it was handed over. Then only an answer tells; without one
 * the server may have it. Before, it cannot.
 */
function reportOf(error: SmtpError, begun: boolean): SendReport {
  const { message, code, responseCode } = error;
  if (begun && responseCode === undefined) {
    return { kind: "unknown", message: `the message was handed over and not answered: ${message}` };
  }
  // Of the message or its addresses. A greeting or a login that is refused will be mended by somebody.
  const isAboutMessage = code === "EENVELOPE" || code === "EMESSAGE";
  const isForGood = isAboutMessage && (responseCode === undefined || responseCode >= 500);
  return { kind: "refused", transient: !isForGood, message };
}
