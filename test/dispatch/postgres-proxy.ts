import { connect, createServer, type Socket } from "node:net";

/** A network of the test's own between a process and PostgreSQL: it can fall silent, and lose the reply to a commit. */
export type PostgresProxy = {
  url: string;
  /** From now on nothing passes, in either direction; connections stay up. */
  pause(): void;
  resume(): void;
  /**
   * The next transaction that runs a statement of this name commits, but its reply is lost with the connection.
   * Resolves when that has happened.
   */
  loseCommitOf(statement: string): Promise<void>;
  /** Statements that passed so far, by name (unnamed ones by their text). */
  readonly statements: Map<string, number>;
  stop(): Promise<void>;
};

type Loss = { statement: string; done: () => void };

export async function startPostgresProxy(target: string): Promise<PostgresProxy> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  const statements = new Map<string, number>();
  const losses: Loss[] = [];
  let paused = false;

  const server = createServer((client) => {
    const host = decodeURIComponent(to.hostname);
    const upstream = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${to.port}`) : connect(Number(to.port), host);
    const seen = new Set<string>();
    let losing: Loss | undefined;
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      if (paused) from.pause();
      from.on("error", () => into.destroy());
      from.on("close", () => {
        sockets.delete(from);
        into.destroy();
      });
    }
    const read = createReader((type, body) => {
      const name = nameOf(type, body);
      if (name === undefined) return;
      statements.set(name, (statements.get(name) ?? 0) + 1);
      if (/^begin\b/i.test(name)) seen.clear();
      seen.add(name);
      if (!/^commit$/i.test(name)) return;
      const at = losses.findIndex((loss) => seen.has(loss.statement));
      if (at >= 0) losing = losses.splice(at, 1)[0];
    });
    client.on("data", (chunk) => {
      read(chunk);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (losing === undefined) client.write(chunk);
      else if (chunk.includes("COMMIT")) {
        client.destroy();
        losing.done();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as { port: number }).port);

  return {
    url: url.href,
    statements,
    pause() {
      paused = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      paused = false;
      for (const socket of sockets) socket.resume();
    },
    loseCommitOf(statement) {
      return new Promise((resolve) => losses.push({ statement, done: resolve }));
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Cuts a client's bytes into messages: a startup message without a type first, then type, length, body. */
function createReader(onMessage: (type: string, body: Buffer) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let started = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = started ? 1 : 0;
      if (rest.length < head + 4) return;
      const end = head + rest.readUInt32BE(head);
      if (rest.length < end) return;
      if (started) onMessage(String.fromCharCode(rest[0]!), rest.subarray(5, end));
      started = true;
      rest = rest.subarray(end);
    }
  };
}

/** The prepared statement that a Bind names, or the text of a simple query. */
function nameOf(type: string, body: Buffer): string | undefined {
  const textFrom = (at: number) => body.toString("utf8", at, body.indexOf(0, at));
  if (type === "Q") return textFrom(0);
  if (type === "B") return textFrom(body.indexOf(0) + 1) || "unnamed";
  return undefined;
}
