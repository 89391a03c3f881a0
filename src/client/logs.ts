import { type Http, pathOf } from "./http.ts";

export type LogQuery = {
  attempt?: number;
  /** Where to begin in the whole log: the `nextByte` of what was read before. */
  fromByte?: number;
  /** At most so much of its end. */
  tailBytes?: number;
};

/** The log of an attempt, as far as it has come; 0: there is no attempt yet. */
export type RunLog = { attempt: number; nextByte: number; text: AsyncIterable<Uint8Array> };

export const logsOf =
  (http: Http) =>
  async (run: string, part: LogQuery = {}): Promise<RunLog> => {
    const { headers, text } = await http.text({ path: pathOf`/v1/runs/${run}/logs`, query: part });
    return {
      attempt: Number(headers.get("punctual-log-attempt")),
      nextByte: Number(headers.get("punctual-log-next")),
      text,
    };
  };
