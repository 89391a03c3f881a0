import { z } from "zod";
import { Problem } from "../../problems/problem.ts";

export const calendarParams = z.strictObject({
  calendar: z.string().max(200).describe("The calendar's name, such as company-holidays"),
});

export function noSuchCalendar(name: string): Problem {
  return new Problem("not-found", `There is no calendar ${JSON.stringify(name.slice(0, 100))}`);
}
