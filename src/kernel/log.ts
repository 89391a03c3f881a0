import { type DestinationStream, type Logger, pino } from "pino";

/** JSON lines on standard error. Messages are constant sentences; what varies goes into fields. */
export type Log = Logger;

export function createLog(options: { level: string; role: string; destination?: DestinationStream }): Log {
  return pino(
    {
      level: options.level,
      base: { role: options.role },
      serializers: { fence: String },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: ["authorization", "headers.authorization", "secret", "payload"],
    },
    options.destination ?? pino.destination({ fd: 2, sync: false }),
  );
}

/** The same log, whose lines pass through `scrub` as they are written, whatever was logged; of its children too. */
export function scrubbedLog(log: Log, scrub: (line: string) => string): Log {
  const { streamSym } = pino.symbols;
  const child = log.child({}) as Log & Record<typeof streamSym, unknown>;
  const stream = child[streamSym] as DestinationStream;
  Object.defineProperty(child, streamSym, { value: { write: (line: string) => void stream.write(scrub(line)) } });
  return child;
}

export const silentLog: Log = pino({ level: "silent" });
