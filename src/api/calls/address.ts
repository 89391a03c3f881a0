import { isIP } from "node:net";
import type { Request } from "express";

/**
 * The caller's address. Express answers the one that the nearest trusted proxy has seen, or the other end of the
 * connection. An IPv4 address in the clothes of IPv6 is shown as IPv4; what a proxy wrote that is no address is nothing.
 */
export function addressOf(request: Pick<Request, "ip" | "socket">): string | null {
  return readAddress(request.ip ?? "") ?? readAddress(request.socket.remoteAddress ?? "");
}

function readAddress(text: string): string | null {
  // Some proxies write down the port.
  const [bare = ""] = (/^\d+(\.\d+){3}:\d+$/.test(text) ? text.replace(/:\d+$/, "") : text).split("%");
  const family = isIP(bare);
  if (family === 0) return null;
  if (family === 4) return bare;
  const shown = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(shown) ?? [];
  if (high === undefined || low === undefined) return shown;
  const [left, right] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [left >> 8, left & 255, right >> 8, right & 255].join(".");
}
