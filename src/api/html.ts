import type { Response } from "express";

/** Pages of ours are plain: no script, nothing from elsewhere, in nobody's frame. */
const PLAIN =
  "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:3rem auto;padding:0 1rem;color:#1b1f24}a{color:#0b5cad}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #d8dee4}code{background:#f3f5f7;padding:.1rem .3rem}input,button{font:inherit;padding:.3rem .6rem}";

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Text of ours as HTML; what stands in backticks is code. */
export function marked(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

/** A page of ours. `body` is HTML; what others have named must have gone through `escapeHtml`. */
export function sendPage(response: Response, title: string, body: string, head = ""): void {
  sendHtml(
    response,
    PLAIN,
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>${head}<style>${STYLE}</style></head><body>${body}</body></html>`,
  );
}

export function sendHtml(response: Response, policy: string, html: string): void {
  response.set({ "content-type": "text/html; charset=utf-8", "content-security-policy": policy }).end(html);
}
