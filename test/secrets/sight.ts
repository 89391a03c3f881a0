import { Redis } from "ioredis";
import type pg from "pg";

/** Everything that tables hold, as text. */
export async function allTables(admin: pg.Pool): Promise<Map<string, string>> {
  const { rows } = await admin.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const found = new Map<string, string>();
  for (const { name } of rows) {
    const all = await admin.query<{ line: string }>(`select t::text as line from ${name} t`);
    found.set(name, all.rows.map((row) => row.line).join("\n"));
  }
  return found;
}

/** Everything that one Redis database holds, with its keys. */
export async function allOfRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, "0", "-1", "WITHSCORES"),
    hash: (key) => redis.hgetall(key),
    stream: (key) => redis.xrange(key, "-", "+"),
  };
  const lines: string[] = [];
  for (const key of await redis.keys("*")) {
    const type = await redis.type(key);
    lines.push(`${key} ${JSON.stringify(await read[type]?.(key))}`);
  }
  redis.disconnect();
  return lines.join("\n");
}

/** The secret as it is and as others write it down; of each, who finds it has found the secret. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = bytes.toString("base64").replace(/=+$/, "");
  const behind = Buffer.from(`user:${secret}`).toString("base64");
  return [
    secret,
    // Its longest plain part: stands in every form that escapes the rest.
    ...secret.split(/[^A-Za-z0-9]+/).filter((part) => part.length >= 6),
    base64,
    base64.replaceAll("+", "-").replaceAll("/", "_"),
    behind.slice(8, -4),
    bytes.toString("hex"),
    encodeURIComponent(secret),
  ];
}

/** Where any of these secrets can be read, and in which form. */
export function findIn(where: string, text: string, secrets: readonly string[]): string[] {
  return secrets.flatMap(formsOf).flatMap((form) => {
    const at = text.toLowerCase().indexOf(form.toLowerCase());
    return at < 0 ? [] : [`${where}: ${form} in …${text.slice(Math.max(0, at - 120), at + 60)}…`];
  });
}
