import pg from "pg";
import type { Clock, Instant } from "../kernel/clock.ts";
import { messageOf, operatorError, outcomeUnknown, PunctualError } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Origin } from "../kernel/origin.ts";
import { createTurns, type Turns } from "../kernel/turns.ts";
import { type ArrayType, columnsTogether, declaredArrays } from "./arrays.ts";
import { atOnce, queryWith } from "./round-trips.ts";
import { isConnectionLoss } from "./sql-errors.ts";
import { parseInstant } from "./values.ts";

/** A named prepared statement: the text is planned once per connection. */
export type Statement = {
  readonly name: string;
  readonly text: string;
  /** Parameters declared as arrays (`$1::uuid[]`), by position: callers pass arrays of domain values. */
  readonly arrays: ReadonlyMap<number, ArrayType>;
  /** Asked as ourselves even behind the wall (reads/wall): nothing of a tenant, and what its role may not see. */
  readonly ofNoTenant?: true;
};

export function sql(name: string, text: string): Statement {
  return { name, text: columnsTogether(text), arrays: declaredArrays(text) };
}

export function sqlOfNoTenant(name: string, text: string): Statement {
  return { ...sql(name, text), ofNoTenant: true };
}

export type Queryable = {
  query<Row = Record<string, unknown>>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
};

export type Transaction = Queryable & {
  /** The call to the API that this belongs to; null where there is none. */
  readonly origin: Origin | null;
  /**
   * The authority's time (database clock, epoch ms with µs), read as a statement of its own: call it after the locks
   * are held, because a lock may have been waited for.
   */
  authorityNow(): Promise<Instant>;
};

export type TransactionOptions = {
  /** Statements that belong to its beginning. */
  enter?: string;
  origin?: Origin | null;
  /** Longest the caller waits for the whole transaction; past it the connection is dropped and the outcome is unknown. */
  deadlineMs: number;
  /** Longest wait for one lock; 0 waits as long as the deadline allows. */
  lockTimeoutMs: number;
};

/** What reading takes. */
export type Reads = Pick<Database, "query" | "queryWithin" | "transact">;

export type Database = Queryable & {
  /** For callers who share its connections with others: half of them at most are one line's. */
  readonly turns: Turns;
  /** Reads, each in a transaction that begins with `enter`: settings that are local to it. */
  within(enter: string): Reads;
  transact<T>(options: TransactionOptions, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** A walk of indexes that the server itself gives up after `timeoutMs`, with SQLSTATE 57014 (`isStatementTimeout`). */
  queryWithin<Row>(timeoutMs: number, statement: Statement, values: readonly unknown[]): Promise<Row[]>;
  /** Runs text that is no prepared statement (DDL, tests). */
  run(text: string): Promise<void>;
  /** Lets running statements end, for some seconds; then their connections are cut. */
  close(): Promise<void>;
};

/** Longest wait for a plain statement: a connection that fell silent must not hold up a loop, or its end, for ever. */
const STATEMENT_DEADLINE_MS = 30_000;
/** Whoever closes has stopped its work before: what still runs is stuck. */
const CLOSE_DEADLINE_MS = 5_000;

const TYPES = new Map<number, (text: string) => unknown>([
  [1184, parseInstant], // timestamptz → epoch ms
  [20, BigInt], // int8: fences and row ids must not lose bits
  [1115, (text) => splitArray(text).map(parseInstant)],
  [1185, (text) => splitArray(text).map(parseInstant)],
  [2951, splitArray], // uuid[]
  [1016, (text) => splitArray(text).map(BigInt)],
]);

function splitArray(text: string): string[] {
  return text.length <= 2 ? [] : text.slice(1, -1).replaceAll('"', "").split(",");
}

const types = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    TYPES.get(oid) ?? pg.types.getTypeParser(oid, format ?? "text")) as typeof pg.types.getTypeParser,
};

/** First the transaction is known as one that writes (it has an id), then time is read: readWatermark counts on it. */
const NOW = sql("authority_now", "select case when pg_current_xact_id() is not null then clock_timestamp() end as now");

/**
 * Verbs walk indexes and nothing else. A statement planned while its table was empty would scan it for ever after
 * (measured: a tenth of the throughput), so the planner is told. SET LOCAL, because a pooler may stand between.
 * It does not choose between two walks: see `located`.
 */
const WALKS = [
  "set local plan_cache_mode = force_generic_plan",
  "set local enable_seqscan = off",
  "set local enable_hashjoin = off",
  "set local enable_mergejoin = off",
  "set local jit = off",
].join(";");
const BEGIN = `begin;${WALKS}`;
/** A process that is frozen, or cut off, in the middle of a transaction must not hold its rows: the server ends it, in the same time. */
function beginOf({ deadlineMs, lockTimeoutMs, enter }: TransactionOptions): string {
  const patience = `set local idle_in_transaction_session_timeout = ${Math.ceil(deadlineMs)}`;
  const locks = lockTimeoutMs > 0 ? [`set local lock_timeout = ${lockTimeoutMs}`] : [];
  return [BEGIN, patience, ...locks, ...(enter === undefined ? [] : [enter])].join(";");
}
const BEGIN_READ = `begin read only;${WALKS};set local enable_bitmapscan = off;set local enable_sort = off`;

export function createDatabase(options: {
  url: string;
  maxConnections: number;
  applicationName: string;
  clock: Clock;
  log: Log;
  /**
   * Longest wait for the answer to one plain `query` or `run`; past it the connection is cut and the error is a
   * retryable `database-unreachable`.
   */
  statementDeadlineMs?: number;
}): Database {
  const { clock, statementDeadlineMs = STATEMENT_DEADLINE_MS } = options;
  const open = new Set<pg.PoolClient>();
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections,
    application_name: options.applicationName,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    types,
  });
  // A client the pool has let go of may still hear that its server went away; unheard, that would end the process.
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
    open.add(client);
    client.once("end", () => open.delete(client));
  });
  pool.on("error", (error) => options.log.warn({ reason: messageOf(error) }, "an idle database connection was lost"));
  let closed: Promise<void> | undefined;

  async function endPool(): Promise<void> {
    const deadline = clock.after(CLOSE_DEADLINE_MS, () => {
      for (const client of open) cut(client, new Error("the database is being closed"));
    });
    await pool.end();
    deadline.cancel();
  }

  /** One statement on a connection of its own, within the deadline. */
  async function alone<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    const deadline = clock.after(statementDeadlineMs, () => {
      broken = new Error(`no answer within ${statementDeadlineMs} ms`);
      cut(client, broken);
    });
    try {
      return await work(client);
    } catch (error) {
      if (broken !== undefined) throw unanswered(broken);
      if (isConnectionLoss(error)) broken = error as Error;
      throw error;
    } finally {
      deadline.cancel();
      client.release(broken);
    }
  }

  const database: Database = {
    turns: createTurns(Math.max(1, Math.floor(options.maxConnections / 2))),

    query<Row>(statement: Statement, values: readonly unknown[] = []) {
      return alone((client) => queryWith<Row>(client, statement, values));
    },

    queryWithin<Row>(timeoutMs: number, statement: Statement, values: readonly unknown[]) {
      // In a transaction, because a pooler may stand between.
      const begin = `${BEGIN_READ};set local statement_timeout = ${timeoutMs}`;
      return alone((client) => atOnce<Row>(client, begin, statement, values));
    },

    within(enter) {
      const own = (statement: Statement) => ({ ...statement, name: `${statement.name}@` });
      return {
        query<Row>(statement: Statement, values: readonly unknown[] = []) {
          if (statement.ofNoTenant) return database.query<Row>(statement, values);
          return alone((client) => atOnce<Row>(client, `begin read only;${enter}`, own(statement), values));
        },
        queryWithin<Row>(timeoutMs: number, statement: Statement, values: readonly unknown[]) {
          if (statement.ofNoTenant) return database.queryWithin<Row>(timeoutMs, statement, values);
          const begin = `${BEGIN_READ};${enter};set local statement_timeout = ${timeoutMs}`;
          return alone((client) => atOnce<Row>(client, begin, own(statement), values));
        },
        transact: (options, work) =>
          database.transact({ ...options, enter }, (tx) =>
            work({ ...tx, query: (statement, values) => tx.query(own(statement), values) }),
          ),
      };
    },

    async run(text) {
      await alone((client) => client.query(text));
    },

    async transact(transaction, work) {
      const client = await connect(pool);
      const doubt: { committing: boolean; warning: string | undefined } = { committing: false, warning: undefined };
      const onNotice = (notice: { code?: string | undefined; message?: string | undefined }) => {
        if (doubt.committing && notice.code?.startsWith("01")) doubt.warning = notice.message ?? "a warning";
      };
      client.on("notice", onNotice as never);
      let broken: Error | undefined;
      // A connection that dies between two statements tells nobody else; unheard, it would end the process.
      const onError = (error: Error) => {
        broken ??= error;
      };
      client.on("error", onError);
      const deadline = clock.after(transaction.deadlineMs, () => {
        broken = new Error(`no answer within ${transaction.deadlineMs} ms`);
        cut(client, broken);
      });
      const tx: Transaction = {
        origin: transaction.origin ?? null,
        query: (statement, values = []) => queryWith(client, statement, values),
        authorityNow: async () => (await queryWith<{ now: Instant }>(client, NOW, []))[0]!.now,
      };
      try {
        await client.query(beginOf(transaction));
        const result = await work(tx);
        doubt.committing = true;
        const answer = await client.query("commit");
        // COMMIT of a failed transaction answers ROLLBACK without an error.
        if (answer.command !== "COMMIT") throw new Error("the transaction had failed before its commit");
        // "canceled wait for synchronous replication": committed here, perhaps nowhere else.
        if (doubt.warning !== undefined) throw outcomeUnknown("committed with a warning", new Error(doubt.warning));
        return result;
      } catch (error) {
        if (isConnectionLoss(error) || broken !== undefined) {
          broken ??= error as Error;
          throw outcomeUnknown("the database connection broke during a transaction", error);
        }
        if (!doubt.committing || doubt.warning === undefined)
          await client.query("rollback").catch((lost) => {
            broken ??= lost as Error;
          });
        throw error;
      } finally {
        deadline.cancel();
        client.off("notice", onNotice as never);
        client.release(broken);
        client.off("error", onError);
      }
    },

    close() {
      closed ??= endPool();
      return closed;
    },
  };
  return database;
}

function unanswered(cause: Error): PunctualError {
  const message = `PostgreSQL does not answer: ${cause.message}`;
  return new PunctualError("database-unreachable", message, { actor: "operator", retryable: true, cause });
}

/** Ends the socket at once, so that every pending query of this client fails. */
function cut(client: pg.PoolClient, reason: Error): void {
  (client as unknown as { connection: { stream: { destroy(error: Error): void } } }).connection.stream.destroy(reason);
}

async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw operatorError("database-unreachable", `PostgreSQL does not answer: ${messageOf(error)}`, {}, error);
  }
}
