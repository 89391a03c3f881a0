import { lookup, Resolver } from "node:dns/promises";
import type { Address } from "../../kernel/addresses.ts";

export type ResolveName = (name: string) => Promise<readonly Address[]>;

const PATIENCE = { timeout: 3_000, tries: 2 };

/** Of the process's few threads the others are for files, and for everybody else. */
const MOST_THREADS = 2;
const MOST_WAITING = 50;

/**
 * Asks name servers itself, on sockets. The system's own way (`getaddrinfo`) takes one of the process's few threads for as
 * long as a server is silent, and whoever names a dozen such names would stop everybody's files and look-ups. It is asked for
 * what servers say that there is not, since it also knows hosts files and search domains; and for a few names at a time,
 * since whoever owns a name's server may say so once and then keep silent.
 */
export function createLookUp(
  servers?: readonly string[],
  patience = PATIENCE,
  askSystem: ResolveName = bySystem,
): ResolveName {
  const resolver = new Resolver(patience);
  if (servers !== undefined) resolver.setServers([...servers]);
  const system = inTurn(askSystem);
  return async (name) => {
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [...addressesOf(four, 4), ...addressesOf(six, 6)];
    if (found.length > 0) return found;
    const failures = [four, six].flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
    const trouble = failures.find((error) => !UNKNOWN.has((error as { code?: string }).code ?? ""));
    if (trouble !== undefined) throw trouble;
    return system(name, failures[0]);
  };
}

/** There is no such name, or no server to ask. Everything else is a server's trouble, and the system would have the same. */
const UNKNOWN: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA", "ECONNREFUSED"]);

const bySystem: ResolveName = async (name) => (await lookup(name, { all: true })) as Address[];

/** So many at a time, each name once; where too many wait, the answer is what servers have said. */
function inTurn(ask: ResolveName): (name: string, otherwise: unknown) => Promise<readonly Address[]> {
  const underWay = new Map<string, Promise<readonly Address[]>>();
  const waiting: (() => void)[] = [];
  let asking = 0;

  async function askOnce(name: string): Promise<readonly Address[]> {
    if (asking === MOST_THREADS) await new Promise<void>((resolve) => waiting.push(resolve));
    else asking++;
    try {
      return await ask(name);
    } finally {
      underWay.delete(name);
      const next = waiting.shift();
      // Whoever is next has this one's place.
      if (next === undefined) asking--;
      else next();
    }
  }

  return (name, otherwise) => {
    const known = underWay.get(name);
    if (known !== undefined) return known;
    if (waiting.length === MOST_WAITING) return Promise.reject(otherwise);
    const asked = askOnce(name);
    underWay.set(name, asked);
    return asked;
  };
}

function addressesOf(asked: PromiseSettledResult<string[]>, family: 4 | 6): Address[] {
  return asked.status === "fulfilled" ? asked.value.map((address) => ({ address, family })) : [];
}

/** Whether a failure is one of looking up a name. */
export function isLookUpFault(error: object): boolean {
  const { syscall } = error as { syscall?: unknown };
  return syscall === "getaddrinfo" || /^query/.test(String(syscall));
}
