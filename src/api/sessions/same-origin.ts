import { Problem } from "../problems/problem.ts";

/** What is asked about where a request came from. */
export type Arrival = {
  header(name: string): string | undefined;
  /** Whether it came by https, at the latest from the proxy on. */
  secure: boolean;
  /** The caller's, as far as proxies are trusted. */
  address: string | null;
};

/**
 * Throws `cross-origin` unless the browser says that a page of ours made the call. Browsers send `Sec-Fetch-Site` where
 * the connection can be trusted and `Origin` with everything that may change something; no page can forge either.
 */
export function refuseOtherOrigins(arrival: Arrival, publicUrl: string): void {
  const site = arrival.header("sec-fetch-site");
  const origin = arrival.header("origin");
  const ours = [originOf(publicUrl), `${arrival.secure ? "https" : "http"}://${arrival.header("host")}`];
  if (site !== undefined && site !== "same-origin") throw crossOrigin(`Sec-Fetch-Site: found ${site.slice(0, 40)}`);
  if (origin !== undefined && !ours.includes(origin)) throw crossOrigin(`Origin: found ${origin.slice(0, 100)}`);
  if (site === undefined && origin === undefined) throw crossOrigin("Neither Sec-Fetch-Site nor Origin was sent");
}

/** Whether a browser made the call, as far as its headers tell. */
export function isFromBrowser({ header }: Pick<Arrival, "header">): boolean {
  return header("sec-fetch-site") !== undefined || header("origin") !== undefined;
}

/** Whether the call may change something. */
export function mayChange(method: string): boolean {
  return method !== "GET" && method !== "HEAD";
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}

function crossOrigin(found: string): Problem {
  return new Problem("cross-origin", `${found}; allowed: a page of this installation`);
}
