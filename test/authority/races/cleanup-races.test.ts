import { expect, it, onTestFinished } from "vitest";
import { createAuthority } from "../../../src/authority/authority.ts";
import { resolveEffect } from "../../../src/authority/effects/resolve.ts";
import { cleanObjects } from "../../../src/authority/objects/clean-objects.ts";
import type { Database } from "../../../src/store/database.ts";
import { createWorld } from "../../support/world.ts";
import { claimSends, effect, email, report, succeeded } from "../effects/scenes.ts";

const DAY_MS = 86_400_000;

it("cleanup / resend: an old result is kept or given up by what holds on to it once its row is held, not by what did before", async () => {
  const world = await createWorld();
  onTestFinished(async () => {
    await world.check();
    await world.close();
  });
  const { grant: run, effects } = await succeeded(world, [email()]);
  const { id: effectId, object_id: objectId } = effects[0]!;
  const [grant] = await claimSends(world, [effectId]);
  await report(world, grant!, { kind: "refused", transient: false, message: "no such user" });
  await world.admin.query(
    "update object set referenced_at = now() - interval '8 days', pin_until = now() - interval '1 day' where id = $1",
    [objectId],
  );
  await world.admin.query("update run set finished_at = now() - interval '8 days' where id = $1", [run.runId]);

  const other = world.another();
  let resolving: Promise<{ kind: string }> | undefined;
  // A cleaner whose looks are apart: between its first and its second somebody wants the result sent once more.
  const transact: Database["transact"] = (options, work) =>
    world.db.transact(options, (tx) =>
      work({
        ...tx,
        query: async (statement, values) => {
          const rows = await tx.query(statement, values);
          if (resolving === undefined) {
            const request = { tenantId: world.tenantId, actor: "ada", effectId, reason: "mended" };
            resolving = resolveEffect(other, { ...request, decision: "resend" });
            await Promise.race([resolving, world.lockWaits()]);
          }
          return rows as never;
        },
      }),
    );
  const cleaner = createAuthority({ ...world.authority, db: { ...world.db, transact } });
  expect(await cleanObjects(cleaner, [objectId!], 7 * DAY_MS)).toEqual([objectId]);
  expect(await resolving).toEqual({ kind: "result-expired" });
  expect(await effect(world, effectId)).toMatchObject({ state: "failed" });
});
