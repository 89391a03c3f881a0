import { createServer, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import pg from "pg";

/**
 * A pooler as PgBouncer is in transaction mode, at its strictest: each transaction of a client has another server
 * connection, and nothing of a session outlives it (DISCARD ALL). A real one clears nothing, and whoever comes next gets what
 * was left, so that is noted. `keepsStatements`: as 1.21 does, it prepares a client's named statements wherever they are
 * missing; otherwise, as those before, it forgets them.
 */
export type TransactionPooler = {
  url: string;
  transactions(): number;
  /** What transactions have left in their sessions: settings, advisory locks, channels, cursors. */
  left(): Promise<readonly string[]>;
  stop(): Promise<void>;
};

const BACKENDS = 6;
const DISCARD = message("Q", Buffer.from("discard all\0"));
const LEFT = message(
  "Q",
  Buffer.from(`select 'setting ' || name from pg_settings where source = 'session' and name not like 'transaction%'
    union all select 'advisory lock' from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
    union all select 'channel ' || name from pg_listening_channels() name
    union all select 'cursor ' || name from pg_cursors where is_holdable\0`),
);
const READY = message("Z", Buffer.from("I"));
const WELCOME = Buffer.concat([
  message("R", Buffer.alloc(4)),
  ...["client_encoding\0UTF8\0", "server_version\0" + "17.0\0"].map((text) => message("S", Buffer.from(text))),
  message("K", Buffer.alloc(8)),
  READY,
]);

type Backend = { socket: Socket; prepared: Set<string>; hear: (type: string, whole: Buffer) => void };

export async function startTransactionPooler(
  target: string,
  options: { keepsStatements: boolean },
): Promise<TransactionPooler> {
  const direct = new URL(target);
  // Through the network, as a pooler would: a socket file has no port to tell it by.
  direct.hostname = "127.0.0.1";
  const sessions = await Promise.all(Array.from({ length: BACKENDS }, () => connectBackend(direct.href)));
  const idle = sessions.map(({ backend }) => backend);
  const waiting: ((backend: Backend) => void)[] = [];
  const clients = new Set<Socket>();
  let transactions = 0;
  const left: string[] = [];

  // Whoever was used longest ago comes next: never the one before.
  const take = async () => idle.shift() ?? (await new Promise<Backend>((resolve) => waiting.push(resolve)));
  function giveBack(backend: Backend): void {
    transactions += 1;
    backend.prepared.clear();
    backend.hear = (type, whole) => {
      if (type === "D") left.push(firstColumnOf(whole));
      if (type !== "Z") return;
      backend.hear = (answer) => {
        if (answer !== "Z") return;
        const next = waiting.shift();
        if (next === undefined) idle.push(backend);
        else next(backend);
      };
      backend.socket.write(DISCARD);
    };
    backend.socket.write(LEFT);
  }

  const server = createServer((client) => {
    clients.add(client);
    client.on("error", () => undefined);
    client.on("close", () => clients.delete(client));
    const statements = new Map<string, Buffer>();
    let backend: Promise<Backend> | undefined;
    let last: Promise<void> = Promise.resolve();

    /** Takes a server connection for the transaction that begins with this message. */
    async function begin(): Promise<Backend> {
      const taken = await take();
      taken.hear = (type, whole) => {
        if (type === "1" && ours.shift() === true) return;
        client.write(whole);
        if (type !== "Z") return;
        ours.length = 0;
        if (whole[5] !== "I".charCodeAt(0)) return;
        backend = undefined;
        giveBack(taken);
      };
      return taken;
    }
    /** For each Parse under way: whether the pooler has sent it, so that its answer is nobody else's business. */
    const ours: boolean[] = [];

    async function forward(type: string, whole: Buffer): Promise<void> {
      backend ??= begin();
      const { socket, prepared } = await backend;
      const name = statementOf(type, whole);
      if (type === "P") {
        statements.set(name, whole);
        prepared.add(name);
        ours.push(false);
      } else if (options.keepsStatements && name !== "" && !prepared.has(name) && statements.has(name)) {
        prepared.add(name);
        ours.push(true);
        socket.write(statements.get(name)!);
      }
      socket.write(whole);
    }

    const read = createReader(false, (type, whole) => {
      if (type === "") client.write(WELCOME);
      else if (type === "X") client.end();
      else last = last.then(() => forward(type, whole));
    });
    client.on("data", read);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(direct);
  url.port = String((server.address() as { port: number }).port);

  return {
    url: url.href,
    transactions: () => transactions,
    async left() {
      while (idle.length < BACKENDS) await setImmediate();
      return left;
    },
    async stop() {
      for (const client of clients) client.destroy();
      for (const { backend } of sessions) backend.socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A session that the driver has opened, and whose bytes are then ours. */
async function connectBackend(url: string): Promise<{ backend: Backend }> {
  const session = new pg.Client({ connectionString: url, application_name: "pooler" });
  session.on("error", () => undefined);
  await session.connect();
  const { stream: socket } = (session as unknown as { connection: { stream: Socket } }).connection;
  const backend: Backend = { socket, prepared: new Set(), hear: () => undefined };
  socket.removeAllListeners("data");
  socket.on(
    "data",
    createReader(true, (type, whole) => backend.hear(type, whole)),
  );
  return { backend };
}

function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + body.length);
  return Buffer.concat([Buffer.from(type), length, body]);
}

/** Cuts bytes into whole messages: a client's first one has no type, told as "". */
function createReader(started: boolean, hear: (type: string, whole: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let typed = started;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = typed ? 1 : 0;
      if (rest.length < head + 4) return;
      const end = head + rest.readUInt32BE(head);
      if (rest.length < end) return;
      const whole = rest.subarray(0, end);
      rest = rest.subarray(end);
      const type = typed ? String.fromCharCode(whole[0]!) : "";
      typed = true;
      hear(type, whole);
    }
  };
}

/** Of a row, as text. */
function firstColumnOf(whole: Buffer): string {
  return whole.toString("utf8", 11, 11 + whole.readInt32BE(7));
}

/** The statement that a Parse or a Bind names; "" for all else. */
function statementOf(type: string, whole: Buffer): string {
  if (type !== "P" && type !== "B") return "";
  const from = type === "P" ? 5 : whole.indexOf(0, 5) + 1;
  return whole.toString("utf8", from, whole.indexOf(0, from));
}
