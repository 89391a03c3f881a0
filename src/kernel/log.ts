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
  return divert(log.child({}), (line, _level, stream) => stream.write(scrub(line)));
}

/** A scrubbed log whose lines are also handed to `keep`, from `info` on also those that the log itself is not to write. */
export function keptLog(log: Log, scrub: (line: string) => string, keep: (line: string) => void): Log {
  const written = log.levelVal;
  const level = written > pino.levels.values.info! ? "info" : log.level;
  return divert(log.child({}, { level }), (line, lineLevel, stream) => {
    const scrubbed = scrub(line);
    if (lineLevel >= written) stream.write(scrubbed);
    keep(scrubbed);
  });
}

/** Writes the lines of `child`, and of its children, with `write` in place of its stream. */
function divert(child: Log, write: (line: string, level: number, stream: DestinationStream) => void): Log {
  const { streamSym, needsMetadataGsym } = pino.symbols;
  const stream = (child as Log & Record<typeof streamSym, unknown>)[streamSym] as DestinationStream;
  const value = {
    // Asks for `lastLevel` to be set before each line.
    [needsMetadataGsym]: true,
    lastLevel: 0,
    write: (line: string) => write(line, value.lastLevel, stream),
  };
  Object.defineProperty(child, streamSym, { value });
  return child;
}

export const silentLog: Log = pino({ level: "silent" });
