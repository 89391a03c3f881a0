import { z } from "zod";

/** Sets of HTTP statuses, as numbers or by their hundred. */
const statusSchema = z.union([z.int().min(200).max(599), z.enum(["2xx", "3xx", "4xx", "5xx"])]);
export const statusesSchema = z.array(statusSchema).max(100);
export type Statuses = z.infer<typeof statusesSchema>;

export const SUCCESSES: Statuses = ["2xx"];
export const RETRIED: Statuses = [408, 425, 429, "5xx"];

const hasStatus = (statuses: Statuses, status: number) =>
  statuses.some((one) => one === status || one === `${Math.floor(status / 100)}xx`);

export type Verdict = "success" | "transient" | "permanent";

/** What an answer means whose redirect is not followed. */
export function judgeStatus(
  status: number,
  { expectedStatuses, retryStatuses }: { expectedStatuses: Statuses; retryStatuses: Statuses },
): Verdict {
  if (hasStatus(expectedStatuses, status)) return "success";
  return hasStatus(retryStatuses, status) ? "transient" : "permanent";
}
