import { type Answer, call } from "../server.ts";

/** What a browser with one cookie sends from a page of this installation. */
export type Browser = { cookie: string; csrf: string; headers: Record<string, string> };

/** Signs in with a key, and reads the token as the console does. */
export async function signIn(url: string, key: string, headers: Record<string, string> = {}): Promise<Browser> {
  const begun = await call(url, "POST", "/v1/session", { key, headers });
  if (begun.status !== 201) throw new Error(`no session: ${begun.status} ${begun.text}`);
  const csrf = String(begun.body.csrfToken);
  return { cookie: cookieOf(begun), csrf, headers: { cookie: cookieOf(begun), "x-csrf-token": csrf, origin: url } };
}

/** `name=value` of the only cookie that was set. */
export function cookieOf(answer: Answer): string {
  const [cookie, ...more] = answer.headers.getSetCookie();
  if (cookie === undefined || more.length > 0) throw new Error(`${1 + more.length} cookies`);
  return cookie.split(";")[0]!;
}
