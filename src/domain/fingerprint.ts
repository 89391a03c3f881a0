import { createHash } from "node:crypto";

/**
 * Failures of one kind share a fingerprint: code and message with what varies (numbers, ids, quoted text) taken out.
 */
export function fingerprintOf(code: string, message: string): string {
  const shape = message
    .slice(0, 500)
    .replace(/"[^"]*"|'[^']*'/g, "…")
    .replace(/\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b/gi, "#")
    .replace(/\d+/g, "#");
  return createHash("sha256").update(`${code}\n${shape}`).digest("hex").slice(0, 16);
}
