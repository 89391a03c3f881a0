/** What a preview should point out though it is no fault. */
import type { CompiledRule } from "./compiled.ts";
import type { CronField } from "./cron/fields.ts";

/** Places of a rule where people often expect something else, each as a sentence without its full stop. */
export function ruleWarnings(rule: CompiledRule): readonly string[] {
  if (rule.kind === "anyOf") return rule.rules.flatMap(ruleWarnings);
  if (rule.kind !== "cron") return [];
  const { fields, hasIdleChoice } = rule;
  const [month, week] = [fields["day-of-month"], fields["day-of-week"]];
  const warnings: string[] = [];
  if ((isSteppedStar(month) && !isWhole(week, 7)) || (isSteppedStar(week) && !isWhole(month, 31))) {
    warnings.push(
      "Both day fields must match, because one of them begins with a star; without the star, either would do",
    );
  }
  if (hasIdleChoice) {
    warnings.push(
      "gap and overlap change nothing here: with a * in minute or hour the rule follows the clock on the wall",
    );
  }
  for (const [field, size] of [
    [fields.second, 60] as const,
    [fields.minute, 60] as const,
    [fields.hour, 24] as const,
  ]) {
    const step = Number(/^\*\/(\d+)$/.exec(field.text)?.[1] ?? 1);
    if (size % step !== 0) warnings.push(`${field.text} is not evenly spaced: it begins anew after ${size - 1}`);
  }
  return warnings;
}

function isSteppedStar(field: CronField): boolean {
  return field.isStarred && field.text.includes("/");
}

function isWhole(field: CronField, size: number): boolean {
  return field.values.length === size;
}
