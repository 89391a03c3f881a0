/** Where a call goes on after a redirect, by the rules of the Fetch standard and some that are stricter. */

export type Hop = {
  url: URL;
  method: string;
  /** What the job's definition says, by lower-case names. */
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  /** False once it has left the origin that the job names: nothing secret goes along from there on. */
  isTrusted: boolean;
};

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
export const isRedirect = (status: number) => REDIRECTS.has(status);

/** Of the job's own headers those that tell nobody anything. */
const HARMLESS = new Set(["accept", "accept-language", "cache-control", "content-type"]);

export type NextHop = { ok: true; hop: Hop } | { ok: false; blocked: boolean; fault: string };

export function nextHop(from: Hop, status: number, location: string): NextHop {
  const url = URL.parse(location, from.url.href);
  if (url === null) return { ok: false, blocked: false, fault: "its Location is no URL" };
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return { ok: false, blocked: true, fault: `its Location leads to ${url.protocol}` };
  }
  if (url.username !== "" || url.password !== "") {
    return { ok: false, blocked: true, fault: "its Location has a user or a password" };
  }
  if (from.url.protocol === "https:" && url.protocol === "http:") {
    return { ok: false, blocked: false, fault: "its Location leads from https to http" };
  }
  const becomesGet =
    status === 303 ? from.method !== "GET" && from.method !== "HEAD" : status < 303 && from.method === "POST";
  const isTrusted = from.isTrusted && url.origin === from.url.origin;
  const headers = Object.fromEntries(
    Object.entries(from.headers).filter(
      ([name]) => (isTrusted || HARMLESS.has(name)) && !(becomesGet && name.startsWith("content-")),
    ),
  );
  return {
    ok: true,
    hop: {
      url,
      method: becomesGet ? "GET" : from.method,
      headers,
      body: becomesGet ? undefined : from.body,
      isTrusted,
    },
  };
}
