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
      redact: ["authorization", "headers.authorization", "secret"],
    },
    options.destination ?? pino.destination({ fd: 2, sync: false }),
  );
}

export const silentLog: Log = pino({ level: "silent" });
