import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  claimSends,
  email,
  report,
  SENT,
  sending,
  succeeded,
  UNKNOWN,
  webhook,
} from "../../authority/effects/scenes.ts";
import { failForGood, running } from "../../authority/scenes.ts";
import { listening } from "../../authority/webhooks/scenes.ts";
import { createWorld, type World } from "../../support/world.ts";
import { callDoctor, type Doctor } from "./examined.ts";

describe("the doctor, of what is to be heard of outside and by schedules", () => {
  let world: World;
  let doctor: Doctor;
  beforeAll(async () => {
    world = await createWorld();
  });
  beforeEach(async () => {
    doctor = await callDoctor(world);
  });
  afterEach(() => doctor.close());
  afterAll(() => world.close());

  const look = async (id: string) => (await doctor.look(id))[0]!;

  it("finds emails and webhooks that nobody sends, by kind; one that has just come due is well", async () => {
    const { effects } = await succeeded(world, [email(), webhook()]);
    expect(await look("effects-due")).toMatchObject({ status: "ok" });
    const ago = (id: string, interval: string) =>
      world.admin.query("update effect set next_attempt_at = clock_timestamp() - $2::interval where id = $1", [
        id,
        interval,
      ]);
    const [hook, mail] = effects;
    await ago(mail!.id, "2 days");
    await ago(hook!.id, "1 minute");
    expect(await look("effects-due")).toMatchObject({
      status: "finding",
      sentence: "the oldest email has been due for 48 h",
      todo: expect.stringContaining("punctual sender"),
    });
    for (const grant of await claimSends(world, [hook!.id, mail!.id])) await report(world, grant, SENT);
    expect(await look("effects-due")).toMatchObject({ status: "ok" });
  });

  it("finds those of which nobody knows whether they were sent: a person has to decide", async () => {
    expect(await look("effects-uncertain")).toMatchObject({ status: "ok" });
    await report(world, await sending(world, email()), UNKNOWN);
    expect(await look("effects-uncertain")).toMatchObject({
      status: "finding",
      sentence: "nobody knows whether they were sent: 1 of kind email",
      todo: expect.stringContaining("punctual effects list --state uncertain"),
    });
  });

  it("finds events that nobody delivers", async () => {
    await listening(world, ["run.succeeded"]);
    const { grant } = await running(world);
    await world.complete(grant);
    expect(await look("webhooks-due")).toMatchObject({ status: "ok" });
    await world.admin.query("update webhook_delivery set next_attempt_at = next_attempt_at - interval '1 hour'");
    expect(await look("webhooks-due")).toMatchObject({
      status: "finding",
      sentence: expect.stringMatching(/^the oldest event has been due for (60 min|1 h)$/),
      todo: expect.stringContaining("punctual sender"),
    });
    await world.admin.query("delete from webhook_endpoint");
    await world.admin.query("delete from webhook_delivery");
  });

  it("finds ends that their schedules do not hear of, and names them; one that was just told is well", async () => {
    const { grant, scheduleId } = await running(world, { pauseOnFailure: true });
    await failForGood(world, grant);
    expect(await look("ends")).toMatchObject({ status: "ok" });
    await world.admin.query(
      "update outbox set available_at = available_at - interval '5 minutes' where kind = 'schedule'",
    );
    expect(await look("ends")).toMatchObject({
      status: "finding",
      sentence: "an end has waited for 5 min for its schedule to hear of it",
      rows: [{ schedule_id: scheduleId, run_id: grant.runId }],
    });
    await world.materialize([scheduleId]);
    expect(await look("ends")).toMatchObject({ status: "ok", sentence: "no end waits to be heard" });
  });
});
