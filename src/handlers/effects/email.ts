import { buffer } from "node:stream/consumers";
import MailComposer from "nodemailer/lib/mail-composer";
import type { EmailEffect } from "../../domain/effects/definition.ts";
import { contentOf } from "../../domain/effects/email-content.ts";
import { fillIn, fillInHtml } from "../../domain/effects/template.ts";
import { PunctualError } from "../../kernel/errors.ts";
import type { EffectAdapter, OutgoingEffect } from "./port.ts";
import { deliver, type SmtpServer } from "./smtp.ts";

/** Larger results are linked to: mail servers refuse messages of this size or somewhat more. */
const ATTACH_LIMIT_BYTES = 10_000_000;

/** Sends email through one SMTP server. The Message-ID is the action id: the same in every attempt. */
export function createEmailAdapter(options: { server: SmtpServer; from: string; concurrency: number }): EffectAdapter {
  const { server, from, concurrency } = options;
  const domain = /@([^\s@>]+)>?$/.exec(from.trim())?.[1] ?? "localhost";
  return {
    kind: "email",
    concurrency,
    async send(outgoing, signal) {
      let attachments: Attachment[];
      try {
        attachments = await attachmentsOf(outgoing);
      } catch (error) {
        if (!(error instanceof PunctualError)) throw error;
        const isGone = error.code === "object-missing";
        return {
          kind: "refused",
          transient: !isGone,
          message: isGone ? "the result's bytes are gone: nothing can be attached" : error.message,
        };
      }
      const message = compose(outgoing, { from, messageId: `<${outgoing.actionId}@${domain}>`, attachments });
      const { from: sender, to } = message.getEnvelope();
      return deliver(server, { from: sender || "", to }, await message.build(), signal);
    },
    close: async () => {},
  };
}

type Attachment = { filename: string; content: Buffer; contentType: string };

function compose(
  { effect, facts, content, resultUrl }: OutgoingEffect,
  frame: { from: string; messageId: string; attachments: Attachment[] },
) {
  const email = effect as EmailEffect;
  const { to, cc } = email;
  const { subject, text, html } = content ?? contentOf(email, undefined, facts.result !== null);
  return new MailComposer({
    ...frame,
    to,
    cc,
    // What is filled in may hold anything; a subject is one line.
    subject: fillIn(subject, facts, resultUrl).replaceAll(/\s+/g, " ").trim(),
    text: fillIn(text, facts, resultUrl),
    ...(html === null ? {} : { html: fillInHtml(html, facts, resultUrl) }),
    date: new Date(Math.floor(facts.run.finishedAt)),
    headers: { "X-Punctual-Run": facts.run.id, "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile();
}

async function attachmentsOf({ effect, facts, openResult }: OutgoingEffect): Promise<Attachment[]> {
  const { result, run } = facts;
  if ((effect as EmailEffect).result !== "attach" || result === null || result.size > ATTACH_LIMIT_BYTES) return [];
  const content = await buffer(await openResult());
  return [{ filename: `${run.id}${extensionOf(result.mediaType)}`, content, contentType: result.mediaType }];
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "text/html": ".html",
  "text/csv": ".csv",
  "text/plain": ".txt",
  "application/json": ".json",
  "application/zip": ".zip",
  "application/pdf": ".pdf",
};

function extensionOf(mediaType: string): string {
  return EXTENSIONS[mediaType.split(";")[0]!.trim().toLowerCase()] ?? "";
}
