import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { resolveEffect } from "../../../src/authority/effects/resolve.ts";
import { deleteEmailTemplate, putEmailTemplate } from "../../../src/authority/tenants/email-templates.ts";
import { createEffectSender } from "../../../src/dispatch/effects/sender.ts";
import type { Sender } from "../../../src/dispatch/effects/sending-loop.ts";
import { createEmailAdapter } from "../../../src/handlers/effects/email.ts";
import { mailReceiver } from "../../support/receivers.ts";
import { createWorld, type World } from "../../support/world.ts";
import { running } from "../scenes.ts";
import { effectsOf, email, makeSendable, succeeded } from "./scenes.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const MONTHLY = { subject: "Month: {{schedule.name}}", text: "At {{result.url}}", html: "<p>{{schedule.name}}</p>" };
const put = (content: { subject: string; text: string; html: string | null }, tenantId = world.tenantId) =>
  putEmailTemplate(world.authority, { tenantId, actor: "ada", name: "monthly", content });

async function post(accept?: Parameters<typeof mailReceiver>[0]) {
  const receiver = await mailReceiver(accept);
  const adapter = createEmailAdapter({
    server: {
      host: "127.0.0.1",
      port: receiver.port,
      secure: false,
      startTls: "off",
      auth: undefined,
      silenceMs: 5_000,
    },
    from: "punctual@example.com",
    concurrency: 5,
  });
  const sender = createEffectSender({
    authority: world.authority,
    adapter,
    objects: { open: async () => Readable.from(["a report"]) },
    name: "sender-a",
    linkTo: (run) => `https://punctual.example.com/${run}?a=1&b=2`,
    graceMs: 10_000,
  });
  onTestFinished(async () => {
    await sender.stop();
    await receiver.close();
  });
  return { receiver, sender };
}

async function pass(sender: Sender): Promise<void> {
  await sender.pass(new AbortController().signal);
  await sender.drain();
}

describe("an email that names a template", () => {
  const named = () => email({ subject: undefined, template: "monthly" });

  it("says what the template said when the result was accepted, in text and in HTML, whatever it says later", async () => {
    await put(MONTHLY);
    const { effects } = await succeeded(world, [named()]);
    await put({ ...MONTHLY, subject: "Later", text: "later", html: null });
    await deleteEmailTemplate(world.authority, { tenantId: world.tenantId, actor: "ada", name: "monthly" });
    let tries = 0;
    const { receiver, sender } = await post(async () => {
      if (++tries === 1) throw Object.assign(new Error("not now"), { responseCode: 451 });
    });
    await pass(sender);
    await makeSendable(world, effects[0]!.id);
    await pass(sender);
    expect(
      receiver.mails.map(({ subject, text, html }) => ({ subject, text: text?.trim(), html: String(html).trim() })),
    ).toEqual(
      Array.from({ length: 2 }, () => ({
        subject: "Month: a schedule",
        text: expect.stringMatching(/^At https:\/\/punctual/),
        html: "<p>a schedule</p>",
      })),
    );
  });

  it("is of its own tenant's, and may have a subject of its own", async () => {
    await put(MONTHLY);
    const other = await world.newTenant("other");
    await put({ subject: "theirs", text: "theirs", html: null }, other);
    const { effects } = await succeeded(world, [email({ subject: "Mine", template: "monthly" })]);
    expect(effects[0]!.request).toMatchObject({ content: { ...MONTHLY, subject: "Mine" } });
  });

  it("adds no markup with what is filled in", async () => {
    await put(MONTHLY);
    const { scheduleId, grant } = await running(world, { effects: [named()] });
    await world.admin.query(`update schedule set name = '<img src=x onerror="alert(1)">''&' where id = $1`, [
      scheduleId,
    ]);
    await world.complete(grant);
    const { receiver, sender } = await post();
    await pass(sender);
    expect(receiver.mails[0]).toMatchObject({
      subject: `Month: <img src=x onerror="alert(1)">'&`,
      html: expect.stringContaining("<p>&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&#39;&amp;</p>"),
    });
  });

  it("says the built-in words where the template was deleted before", async () => {
    const { effects } = await succeeded(world, [named()]);
    expect(effects[0]!.request).toMatchObject({ content: { subject: "{{job.name}} of {{run.scheduledAt}}" } });
  });
});

describe("an email that says nothing of its own", () => {
  it("has built-in words, as text and as HTML, with a link where there is a result", async () => {
    const plain = () => email({ subject: undefined });
    await succeeded(world, [plain()]);
    const { grant } = await running(world, { effects: [plain()] });
    await world.complete(grant);
    const { receiver, sender } = await post();
    await pass(sender);
    await pass(sender);
    const [withResult, without] = receiver.mails.toSorted((a) => (String(a.html).includes("href") ? -1 : 1));
    expect(withResult).toMatchObject({
      subject: expect.stringMatching(/^test\.noop of \d{4}-/),
      text: expect.stringContaining("https://punctual.example.com/run_"),
      html: expect.stringMatching(
        /<h1[^>]*>test\.noop has succeeded<\/h1>[\s\S]*href="https:\/\/punctual[^"]*a=1&amp;b=2"/,
      ),
    });
    expect(String(without!.html)).not.toContain("href");
    expect(without!.text).not.toContain("http");
  });

  it("but its own text, is plain", async () => {
    const { effects } = await succeeded(world, [email({ text: "Done" })]);
    expect(effects[0]!.request).toMatchObject({ content: { subject: "Done", text: "Done", html: null } });
  });

  it("and was written down by an older program, is sent as it was", async () => {
    const { effects } = await succeeded(world, [email({ subject: "Old", text: "old words" })]);
    await world.admin.query("update effect set request = request - 'content'");
    const { receiver, sender } = await post();
    await pass(sender);
    expect(receiver.mails).toMatchObject([{ subject: "Old", text: "old words\n", html: false }]);
    const request = { tenantId: world.tenantId, actor: "ada", effectId: effects[0]!.id } as const;
    expect(await resolveEffect(world.authority, { ...request, decision: "resend", reason: "x" })).toMatchObject({
      kind: "settled",
    });
    expect(await effectsOf(world, effects[0]!.run_id)).toMatchObject([{ state: "sent" }]);
  });
});
