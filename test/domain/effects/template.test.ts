import { expect, it } from "vitest";
import type { EffectFacts } from "../../../src/domain/effects/facts.ts";
import { fillIn, fillInHtml, placeholderText } from "../../../src/domain/effects/template.ts";

const FACTS: EffectFacts = {
  schedule: { id: "sch_1", name: "<b>Nightly</b>" },
  job: "report",
  run: { id: "run_1", scheduledAt: 0, finishedAt: 0, attempt: 1 },
  result: null,
};
const messagesOf = (text: string, max = 5000) =>
  placeholderText(max)
    .safeParse(text)
    .error?.issues.map((issue) => issue.message);

it("names are filled in with or without blanks around them, and what means nothing stays as it is", () => {
  const text = "{{schedule.name}}{{ run.id }}{{\n result.size\t}} {{nothing}} {{ {{job.name}} }} {{";
  expect(fillIn(text, FACTS, null)).toBe("<b>Nightly</b>run_1 {{nothing}} {{ report }} {{");
  expect(fillInHtml("{{schedule.name}} <i>", FACTS, null)).toBe("&lt;b&gt;Nightly&lt;/b&gt; <i>");
});

it("a text has at most a hundred placeholders, all of them known; one that is too long is not looked at", () => {
  expect(messagesOf("{{run.id}}".repeat(100))).toBeUndefined();
  expect(messagesOf("{{run.id}}".repeat(101))).toEqual(["at most 100 placeholders"]);
  expect(messagesOf("{{nothing}}")).toEqual([expect.stringMatching(/^placeholders are \{\{schedule\.id\}\}, /)]);
  expect(messagesOf("{{nothing}}", 5)).toHaveLength(1);
});
