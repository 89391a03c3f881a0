import { randomUUID } from "node:crypto";
import type { ApiContext } from "../../src/api/context.ts";
import { accountFor } from "../../src/api/ledger.ts";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { expireLeases } from "../../src/authority/attempts/expire.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import { releaseRuns } from "../../src/authority/attempts/release.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { putCalendar } from "../../src/authority/calendars/put-calendar.ts";
import { createBackfill } from "../../src/authority/operations/backfill/create.ts";
import { OPERATION_KINDS } from "../../src/authority/operations/kinds.ts";
import { stepOperation } from "../../src/authority/operations/step-operation.ts";
import { leaveToRelay } from "../../src/authority/runs/bear.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { runNow } from "../../src/authority/runs/run-now.ts";
import { createSchedule } from "../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../src/authority/schedules/delete-schedule.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { calendarDefinitionSchema } from "../../src/domain/calendar/definition.ts";
import type { Definition } from "../../src/domain/definition.ts";
import { PunctualError } from "../../src/kernel/errors.ts";
import { findSchedule } from "../../src/store/reads/schedules.ts";
import { checkInvariants } from "../support/invariants.ts";
import { randomFrom } from "../support/random.ts";
import { definitionOf, type World } from "../support/world.ts";
import { pickRule, SPAN } from "./literal-rules.ts";
import { Crash, type Setting } from "./setting.ts";
import { type RuleInForce, readRecords, Truth } from "./truth.ts";

const SCHEDULES = 6;
/** Instants further on have no partition, and a play of many days would count more than it tries. */
const LONGEST_MS = 6 * SPAN.DAY;
const { SECOND, MINUTE, HOUR } = SPAN;

/** Told by when attempts started, which says nothing once the clock was set back. */
const BY_TIME = ["4: fences grow with the starts of a schedule, and none is given twice"];

type Act = { weight: number; name: string; play: () => Promise<unknown> };
type Fate = "done" | "crashed" | "lost" | "busy";

/** One random play: what happens is drawn from the seed alone, for time stands still between the moves. */
export class Play {
  readonly history: string[] = [];
  readonly #world: World;
  readonly #setting: Setting;
  readonly #seed: number;
  readonly #acts: readonly Act[];
  readonly #chance: () => number;
  #schedules: Truth[] = [];
  #gone: Truth[] = [];
  #startedAt = 0;
  #calendarVersion = 0;

  constructor(world: World, setting: Setting, seed: number) {
    this.#world = world;
    this.#setting = setting;
    this.#seed = seed;
    this.#chance = randomFrom(seed);
    const acts: Act[] = [
      { weight: 14, name: "time", play: () => this.#pass(this.#upTo(90 * SECOND)) },
      { weight: 8, name: "minutes", play: () => this.#pass(this.#upTo(20 * MINUTE)) },
      { weight: 5, name: "outage", play: () => this.#pass(this.#upTo(9 * HOUR)) },
      { weight: 2, name: "clock-back", play: () => this.#setting.move(-this.#upTo(5 * MINUTE)) },
      { weight: 14, name: "scan", play: () => this.#scan(this.#some(this.#schedules, 3)) },
      { weight: 8, name: "scan-all", play: () => this.#scanAll() },
      { weight: 4, name: "two-scanners", play: () => this.#twoScanners() },
      { weight: 9, name: "edit", play: () => this.#edit(true) },
      { weight: 3, name: "edit-back-edit", play: () => this.#editBackEdit() },
      { weight: 5, name: "edit-payload", play: () => this.#edit(false) },
      { weight: 5, name: "pause", play: () => this.#pause() },
      { weight: 7, name: "resume", play: () => this.#resume() },
      { weight: 5, name: "run-now", play: () => this.#runNow() },
      { weight: 2, name: "delete", play: () => this.#delete() },
      { weight: 10, name: "claim", play: () => this.#claim() },
      { weight: 8, name: "complete", play: () => this.#endAttempts("complete") },
      { weight: 4, name: "fail", play: () => this.#endAttempts("fail") },
      { weight: 2, name: "release", play: () => this.#endAttempts("release") },
      { weight: 3, name: "expire", play: () => this.#endAttempts("expire") },
      { weight: 3, name: "backfill", play: () => this.#backfill() },
      { weight: 2, name: "calendar", play: () => this.#changeCalendar() },
      { weight: 4, name: "cancel", play: () => this.#cancel() },
    ];
    this.#acts = acts.flatMap((act) => Array.from({ length: act.weight }, () => act));
  }

  async run(steps: number): Promise<void> {
    this.#startedAt = this.#setting.now();
    await this.#changeCalendar();
    while (this.#schedules.length < SCHEDULES) await this.#create();
    for (let n = 1; n <= steps; n++) {
      const act = this.#pick(this.#acts);
      this.#tell(act.name);
      const settled = (await act.play()) === "settled";
      while (this.#schedules.length < SCHEDULES) await this.#create();
      await this.#readStatuses();
      await this.#check(this.#schedules, settled);
      if (n % 15 === 0) await this.#checkAll(this.#schedules);
    }
    await this.#scanAll();
    await this.#check([...this.#schedules, ...this.#gone], true);
    await this.#checkAll([...this.#schedules, ...this.#gone]);
  }

  async #check(some: readonly Truth[], settled: boolean): Promise<void> {
    const records = await readRecords(
      this.#world,
      some.map((one) => one.id),
    );
    for (const one of some) one.check(records.get(one.id)!, this.#setting.now(), settled);
  }

  /** The chains by the program's own proof, all other invariants, and the ledger as the API tells it. */
  async #checkAll(schedules: readonly Truth[]): Promise<void> {
    await checkInvariants(this.#world.admin, BY_TIME);
    for (const { id } of schedules) {
      const [authority] = this.#setting.authorities;
      const context = { authority, db: authority.db, zones: authority.zones } as unknown as ApiContext;
      const schedule = (await findSchedule(authority.db, this.#world.tenantId, id))!;
      const toAt = this.#setting.now() + SPAN.DAY;
      const page = { fromAt: this.#startedAt - SPAN.DAY, toAt, boundAt: toAt, limit: 200 };
      const account = await accountFor(context, schedule, page);
      if (account.holes.length > 0) throw new Error(`${id}: the ledger has holes: ${JSON.stringify(account.holes)}`);
      if (account.opinion.difference !== null) {
        throw new Error(`${id}: the rule differs: ${JSON.stringify(account.opinion.difference)}`);
      }
    }
  }

  async #create(): Promise<void> {
    const { definition, inForce } = this.#definition();
    const requestKey = { key: randomUUID(), bodySha256: Buffer.alloc(32) };
    const create = (authority: Authority) =>
      createSchedule(authority, {
        tenantId: this.#world.tenantId,
        actor: "model",
        requestKey,
        name: "a schedule",
        labels: {},
        definition,
        payload: {},
      });
    const { fate, outcome } = await this.#tempt(create);
    if (fate === "crashed" || fate === "busy") return;
    const made = outcome ?? (await create(this.#setting.authorities[1]));
    if (made.kind !== (fate === "lost" ? "repeated" : "created")) throw new Error(`creating: ${JSON.stringify(made)}`);
    if (!("schedule" in made)) throw new Error("unreachable");
    this.#tell(`create ${made.schedule.id} ${JSON.stringify(definition.rule)}`);
    this.#schedules.push(new Truth(made.schedule.id, inForce, this.#setting.now()));
  }

  /** A chain that has no instant yet is left for another, at what the clock calls an earlier time. */
  async #editBackEdit(): Promise<void> {
    const one = this.#pick(this.#schedules);
    await this.#edit(true, one);
    await this.#setting.move(-this.#upTo(10 * MINUTE));
    await this.#edit(true, one);
  }

  async #edit(instantsChange: boolean, one = this.#pick(this.#schedules)): Promise<void> {
    const { definition, inForce } = this.#definition();
    const payload = { n: Math.floor(this.#chance() * 1000) };
    const change = instantsChange ? { definition } : { payload };
    const revise = (authority: Authority) =>
      reviseSchedule(authority, { ...this.#of(one), expectedRevision: one.revision, change });
    const { fate, outcome } = await this.#tempt(revise);
    this.#tell(`  ${one.id} ${instantsChange ? JSON.stringify(definition.rule) : "payload"}: ${fate}`);
    if (fate === "crashed" || fate === "busy") return;
    if (fate === "lost") {
      const again = await revise(this.#setting.authorities[1]);
      if (again.kind !== "conflict") throw new Error(`a revision whose reply was lost, again: ${again.kind}`);
    } else if (outcome!.kind !== "revised") {
      throw new Error(`revising: ${JSON.stringify(outcome)}`);
    }
    one.revision += 1;
    if (instantsChange) await one.edited(inForce, this.#setting.now(), this.#world);
  }

  async #pause(): Promise<void> {
    const one = this.#pick(this.#schedules);
    const { fate, outcome } = await this.#tempt((authority) => pauseSchedule(authority, this.#of(one)));
    this.#tell(`  ${one.id}: ${fate} ${outcome?.kind}`);
  }

  async #resume(): Promise<void> {
    const one = this.#pick(this.#schedules.filter(({ status }) => status === "paused").concat(this.#schedules));
    const misfire = this.#pick([undefined, "latest", "skip", "all"] as const);
    const request = { ...this.#of(one), ...(misfire === undefined ? {} : { misfire }) };
    const { fate, outcome } = await this.#tempt((authority) => resumeSchedule(authority, request));
    this.#tell(`  ${one.id} ${misfire}: ${fate} ${outcome?.kind}`);
  }

  /** A pause may come too late, or by a failure: whether a schedule waits for a resume is all that counts. */
  async #readStatuses(): Promise<void> {
    const { rows } = await this.#world.admin.query("select id from schedule where status = 'paused'");
    const paused = new Set(rows.map((row) => row.id as string));
    for (const one of this.#schedules) one.status = paused.has(one.id) ? "paused" : "active";
  }

  async #backfill(): Promise<void> {
    const one = this.#pick(this.#schedules);
    const toAt = Math.floor(this.#setting.now() - this.#upTo(2 * HOUR));
    const fromAt = Math.floor(toAt - this.#upTo(6 * HOUR)) - 1;
    const policy = this.#pick(["missing", "all-skipped"] as const);
    const request = { ...this.#of(one), fromAt, toAt, policy, reason: null, pacePerSecond: 40, total: null };
    const { fate, outcome } = await this.#tempt((authority) => createBackfill(authority, request));
    this.#tell(`  ${one.id}: ${fate} ${outcome?.kind}`);
    if (outcome?.kind !== "created") return;
    for (let steps = Math.floor(this.#chance() * 6); steps > 0; steps--) {
      await this.#setting.move(1_100);
      await this.#tempt((authority) => stepOperation(authority, OPERATION_KINDS, outcome.operation.id));
    }
  }

  /** Which days it excludes changes nothing of which instants there are. */
  async #changeCalendar(): Promise<void> {
    const day = new Date(this.#setting.now() + this.#upTo(5 * SPAN.DAY)).toISOString().slice(0, 10);
    const definition = calendarDefinitionSchema.parse({ dates: [{ date: day, name: "a day off" }] });
    await this.#tempt((authority) =>
      putCalendar(authority, {
        tenantId: this.#world.tenantId,
        actor: "model",
        name: "days-off",
        expectedVersion: this.#calendarVersion,
        definition,
      }),
    );
    const { rows } = await this.#world.admin.query("select max(version)::int as version from calendar");
    this.#calendarVersion = rows[0].version ?? 0;
  }

  async #delete(): Promise<void> {
    const one = this.#pick(this.#schedules);
    const { fate } = await this.#tempt((authority) => deleteSchedule(authority, this.#of(one)));
    this.#tell(`  ${one.id} (${one.status}): ${fate}`);
    if (fate === "crashed" || fate === "busy") return;
    await one.deleted(this.#setting.now(), this.#world);
    await this.#check([one], true);
    this.#schedules = this.#schedules.filter((other) => other !== one);
    this.#gone.push(one);
  }

  async #runNow(): Promise<void> {
    const one = this.#pick(this.#schedules);
    const requestKey = { key: randomUUID(), bodySha256: Buffer.alloc(32) };
    const run = (authority: Authority) => runNow(authority, { ...this.#of(one), requestKey });
    const { fate } = await this.#tempt(run);
    if (fate === "lost") {
      const again = await run(this.#setting.authorities[1]);
      if (again.kind !== "repeated") throw new Error(`a run-now whose reply was lost, again: ${again.kind}`);
    }
  }

  async #scan(some: readonly Truth[]): Promise<void> {
    const ids = some.map((one) => one.id);
    const { fate, outcome } = await this.#tempt((authority) => materialize(authority, ids, leaveToRelay));
    this.#tell(`  ${ids.join(" ")}: ${fate} ${outcome?.runs ?? ""} ${outcome?.skips ?? ""}`);
  }

  async #twoScanners(): Promise<void> {
    const ids = this.#schedules.map((one) => one.id);
    await Promise.all(this.#setting.authorities.map((authority) => materialize(authority, ids, leaveToRelay)));
  }

  async #scanAll(): Promise<"settled"> {
    const ids = this.#schedules.map((one) => one.id);
    for (let passes = 0; ; passes++) {
      const done = await materialize(this.#setting.authorities[passes % 2]!, ids, leaveToRelay);
      if (done.undecided > 0) throw new Error("nobody else holds anything, and a schedule is undecided");
      if (!done.stillDue && done.unplanned.length === 0) return "settled";
      if (passes > 200) throw new Error("catching up has no end");
    }
  }

  async #claim(): Promise<void> {
    const rows = this.#some(await this.#world.outbox(), 12);
    const claim = {
      claimId: randomUUID(),
      worker: "w",
      slots: { short: 8 },
      hints: rows.map((row) => ({ rowId: row.id, epoch: 1 })),
    };
    const { fate } = await this.#tempt((authority) => claimRuns(authority, { ...claim, repeated: false }));
    if (fate === "lost") await claimRuns(this.#setting.authorities[1], { ...claim, repeated: true });
  }

  async #endAttempts(how: "complete" | "fail" | "release" | "expire"): Promise<void> {
    const { rows } = await this.#world.admin.query(
      "select id, fence from live_run where state = 'running' order by scheduled_at, id",
    );
    const held = this.#some(rows, 5).map((row) => ({
      runId: row.id as string,
      fence: row.fence as bigint,
      worker: "w",
    }));
    const transient = this.#chance() < 0.6;
    await this.#tempt(async (authority) => {
      if (how === "complete")
        return completeRuns(
          authority,
          held.map((one) => ({ ...one, output: null })),
        );
      if (how === "fail") {
        const failure = { transient, code: "x", message: "x" };
        return failRuns(
          authority,
          held.map((one) => ({ ...one, failure })),
        );
      }
      if (how === "release") return releaseRuns(authority, held);
      return expireLeases(
        authority,
        held.map((one) => one.runId),
        0,
      );
    });
  }

  async #cancel(): Promise<void> {
    const { rows } = await this.#world.admin.query("select id from live_run order by scheduled_at, id");
    const runs = this.#some(rows, 4).map((row) => ({ tenantId: this.#world.tenantId, runId: row.id as string }));
    await this.#tempt((authority) => cancelRuns(authority, runs));
  }

  /** A verb, one time in ten with a crash in the middle of it, or with its reply lost. */
  async #tempt<T>(verb: (authority: Authority) => Promise<T>): Promise<{ fate: Fate; outcome?: T }> {
    const [authority] = this.#setting.authorities;
    const drawn = this.#chance();
    const point = this.#pick([
      "materialize:written",
      "materialize:cursors-locked",
      "claim:written",
      "complete:written",
    ]);
    const disarm = drawn < 0.07 ? this.#setting.crashAt(point) : drawn < 0.14 ? this.#setting.loseReply() : () => false;
    try {
      const outcome = await verb(authority);
      return { fate: "done", outcome };
    } catch (error) {
      if (error instanceof Crash) return { fate: "crashed" };
      if (error instanceof PunctualError && error.code === "outcome-unknown") return { fate: "lost" };
      if (error instanceof PunctualError && error.code === "busy") return { fate: "busy" };
      throw error;
    } finally {
      disarm();
    }
  }

  #definition(): { definition: Definition; inForce: RuleInForce } {
    const now = this.#setting.now();
    const literal = pickRule(this.#chance, now);
    const whole = Math.ceil(now / SECOND) * SECOND;
    const startAt = this.#chance() < 0.15 ? whole + this.#upTo(4 * HOUR) : undefined;
    const endAt = this.#chance() < 0.15 ? whole + this.#upTo(30 * HOUR) + 5 * HOUR : undefined;
    const maxRuns = this.#chance() < 0.1 ? 1 + Math.floor(this.#chance() * 400) : undefined;
    const windowMs = this.#chance() < 0.15 ? SECOND + Math.floor(this.#upTo(HOUR)) : undefined;
    const usesCalendar = this.#calendarVersion > 0 && this.#chance() < 0.2;
    const calendars = [{ name: "days-off", onExcluded: this.#pick(["exclude", "shift"]) }];
    const show = (at: number) => new Date(at).toISOString();
    const definition = definitionOf({
      rule: literal.rule,
      ...(startAt === undefined ? {} : { startAt: show(startAt) }),
      ...(endAt === undefined ? {} : { endAt: show(endAt) }),
      ...(maxRuns === undefined ? {} : { maxRuns }),
      ...(windowMs === undefined ? {} : { windowMs }),
      ...(usesCalendar ? { calendars } : {}),
      pauseOnFailure: this.#chance() < 0.15,
      overlap: this.#pick([
        { policy: "forbid" },
        { policy: "bufferOne" },
        { policy: "skip" },
        { policy: "cancelRunning" },
        { policy: "allow", limit: 2 },
        { policy: "allow" },
      ]),
      misfire: {
        policy: this.#pick(["latest", "skip", "all"]),
        graceMs: this.#pick([0, 30 * SECOND, 2 * MINUTE, HOUR]),
        maxCatchUp: this.#pick([1, 3, 40]),
      },
    });
    const dueWithinMs = (windowMs ?? 0) + (usesCalendar ? 9 * SPAN.DAY : 0);
    return { definition, inForce: { ...literal, startAt, endAt, maxRuns, dueWithinMs } };
  }

  async #pass(ms: number): Promise<void> {
    if (this.#setting.now() + ms - this.#startedAt > LONGEST_MS) return;
    await this.#setting.move(ms);
    this.#tell(`  ${new Date(this.#setting.now()).toISOString()}`);
  }

  #of(one: Truth) {
    return { tenantId: this.#world.tenantId, actor: "model", scheduleId: one.id };
  }

  #tell(what: string): void {
    this.history.push(`seed ${this.#seed} ${what}`);
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#chance() * items.length)]!;
  }

  #some<T>(items: readonly T[], most: number): T[] {
    const count = Math.min(items.length, 1 + Math.floor(this.#chance() * most));
    return [...new Set(Array.from({ length: count }, () => this.#pick(items)))];
  }

  #upTo(ms: number): number {
    return Math.floor(this.#chance() * ms * 1000) / 1000;
  }
}
