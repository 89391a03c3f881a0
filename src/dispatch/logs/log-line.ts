/** What every line of an attempt's log would say again and again. */
const KNOWN = new Set(["level", "time", "role", "run", "attempt", "fence", "msg"]);

/** A line of the process's log (JSON) as a reader of one attempt's log wants it: when, how bad, what, and its fields. */
export function readableLine(json: string): string {
  try {
    const line = JSON.parse(json) as Record<string, unknown>;
    const fields = Object.fromEntries(Object.entries(line).filter(([name]) => !KNOWN.has(name)));
    const more = Object.keys(fields).length === 0 ? "" : ` ${JSON.stringify(fields)}`;
    return `${line.time} ${String(line.level).toUpperCase()} ${line.msg ?? ""}${more}\n`;
  } catch {
    return json;
  }
}
