import { readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { operatorError } from "../../kernel/errors.ts";

/** The numeric user and group a server runs as. */
export type Account = { uid: number; gid: number };

/**
 * The account PostgreSQL runs as: undefined means as ourselves. PostgreSQL refuses to run as root, so for root it is the
 * owner of `dataDirectory` when that is somebody else already, then `postgres`, then `nobody`. No account is created.
 */
export function accountForPostgres(dataDirectory: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(dataDirectory, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = findAccount("postgres") ?? findAccount("nobody");
  if (account) return account;
  throw operatorError(
    "no-unprivileged-account",
    "PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor `nobody`. " +
      "Start Punctual as another user, create one of the two, or name a server in DATABASE_URL.",
  );
}

function findAccount(name: string): Account | undefined {
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
    const [user, , uid, gid] = line.split(":");
    if (user === name && Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/** Whether `account` may walk to `path` (of which the end need not exist yet). Looks at plain modes, not at ACLs. */
export function isReachable(path: string, account: Account): boolean {
  let at = resolve(path);
  while (!statSync(at, { throwIfNoEntry: false })) at = dirname(at);
  for (at = realpathSync(at); ; at = dirname(at)) {
    if (!mayEnter(statSync(at), account)) return false;
    if (at === dirname(at)) return true;
  }
}

function mayEnter(place: Stats, account: Account): boolean {
  if (place.uid === account.uid) return (place.mode & 0o100) !== 0;
  if (place.gid === account.gid) return (place.mode & 0o010) !== 0;
  return (place.mode & 0o001) !== 0;
}
