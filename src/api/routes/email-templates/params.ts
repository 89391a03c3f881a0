import { z } from "zod";
import { Problem } from "../../problems/problem.ts";

export const templateParams = z.strictObject({
  template: z.string().max(100).describe("The template's name: 1 to 40 lower case letters, digits or -"),
});

export function noSuchTemplate(name: string): Problem {
  return new Problem("not-found", `There is no email template ${JSON.stringify(name.slice(0, 100))}`);
}
