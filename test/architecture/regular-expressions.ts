import { parseSync, Visitor } from "oxc-parser";
import { analyse } from "scslre";

/** Regular expressions that a long text can keep busy: their work grows with the square of the text, or faster. */

/** Their texts are an operator's, our own, or short. */
const EXCEPT: readonly { in: RegExp; pattern: RegExp }[] = [
  { in: /^src\/(app|client)\//, pattern: /./ },
  // The URL of an installation, or of its issuer of sign-ins.
  { in: /^src\/api\//, pattern: /^\\\/\+\$$/ },
  { in: /^src\/store\/migration-files\.ts$/, pattern: /./ },
  // An expression has at most 200 characters by then.
  { in: /^src\/domain\/recurrence\/cron\/grammar\.ts$/, pattern: /^\^\[ / },
];

/** Patterns that are put together while the program runs are not seen. */
export function slowPatternsIn(path: string, text: string): string[] {
  const found: string[] = [];
  const look = (source: string, flags: string) => {
    if (EXCEPT.some((one) => one.in.test(path) && one.pattern.test(source))) return;
    if (analyse({ source, flags }).reports.length > 0) found.push(`${path}: /${source}/${flags}`);
  };
  new Visitor({
    Literal(node) {
      if ("regex" in node) look(node.regex.pattern, node.regex.flags);
    },
  }).visit(parseSync(path, text).program);
  return found;
}
