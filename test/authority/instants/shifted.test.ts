import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { putCalendar } from "../../../src/authority/calendars/put-calendar.ts";
import { leaveToRelay } from "../../../src/authority/runs/bear.ts";
import { settleLocked } from "../../../src/authority/runs/materialize.ts";
import { calendarDefinitionSchema } from "../../../src/domain/calendar/definition.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import type { Transaction } from "../../../src/store/database.ts";
import { lockCursorsSkipping } from "../../../src/store/rows/cursors.ts";
import { createWorld, type World } from "../../support/world.ts";

const DAY = 86_400_000;
const CLOSED_DAYS = 300;
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

describe("schedules that shift over a long closed stretch", () => {
  let world: World;
  let at: number;
  beforeAll(async () => {
    world = await createWorld();
    const { rows } = await world.admin.query("select extract(epoch from clock_timestamp()) * 1000 as now");
    at = Math.floor(Number(rows[0].now) / 1000) * 1000;
    await putCalendar(world.authority, {
      tenantId: world.tenantId,
      actor: "test",
      name: "closed",
      expectedVersion: 0,
      definition: calendarDefinitionSchema.parse({
        weekend: [],
        ranges: [{ from: dateOf(at - CLOSED_DAYS * DAY), to: dateOf(at + 5 * DAY) }],
      }),
    });
  });
  afterEach(() => world.check());
  afterAll(() => world.close());

  /** Every day at the time of day of `at`, which is the next to be decided, and the last: no own run on the open day. */
  async function daily(): Promise<Uuid> {
    const time = new Date(at);
    const expression = `${time.getUTCSeconds()} ${time.getUTCMinutes()} ${time.getUTCHours()} * * *`;
    const scheduleId = await world.newSchedule({
      rule: { kind: "cron", expression, seconds: true, zone: "Etc/UTC" },
      endAt: new Date(at + DAY).toISOString(),
      calendars: [{ name: "closed", onExcluded: "shift" }],
    });
    await world.admin.query("update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = $1", [
      scheduleId,
      new Date(at),
    ]);
    return scheduleId;
  }

  /** Settles the schedules in one transaction; answers how many earlier instants each look for their runs was about. */
  function settle(scheduleIds: readonly Uuid[]): Promise<{ runs: number; looks: number[] }> {
    return world.authority.transact("materialize", async (tx) => {
      const looks: number[] = [];
      const counting: Transaction = {
        ...tx,
        query: (statement, values) => {
          if (statement.name === "calendars_find_shifted_runs") looks.push((values![0] as unknown[]).length);
          return tx.query(statement, values);
        },
      };
      const cursors = await lockCursorsSkipping(counting, scheduleIds);
      const { runs } = await settleLocked(world.authority, counting, cursors, leaveToRelay);
      return { runs, looks };
    });
  }

  const historyOf = async (scheduleId: Uuid) =>
    (
      await world.admin.query(
        "select scheduled_at, due_at, skip_reason from run where schedule_id = $1 order by scheduled_at",
        [scheduleId],
      )
    ).rows;

  it("look for runs of all the days before in two statements each, whatever the length of the stretch", async () => {
    const scheduleIds = [await daily(), await daily(), await daily()];
    const { runs, looks } = await settle(scheduleIds);
    const each = [1, CLOSED_DAYS - 1];
    expect({ runs, looks }).toEqual({ runs: 3, looks: [...each, ...each, ...each] });
    for (const scheduleId of scheduleIds) {
      expect(await historyOf(scheduleId)).toEqual([
        { scheduled_at: new Date(at), due_at: new Date(at + 6 * DAY), skip_reason: null },
      ]);
    }
  });
});
