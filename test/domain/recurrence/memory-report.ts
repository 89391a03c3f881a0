/** Run by bounds.test.ts in a process with a small heap: compiles and asks far more rules than may be remembered. */
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import { cron, zones } from "./support.ts";

const RULES = Number(process.argv[2]);
const names = zones.names;
let asked = 0;
for (let k = 0; k < RULES; k += 1) {
  const expression = `${k % 60} ${Math.floor(k / 60) % 24} ${1 + (Math.floor(k / 1440) % 28)} * *`;
  const compilation = compileRule(cron(expression, names[k % names.length], { gap: "shift" }), zones);
  if (compilation.ok && nextAfter(compilation.rule, 1_800_000_000_000) !== null) asked += 1;
}
console.log(JSON.stringify({ asked, heapMiB: Math.round(process.memoryUsage().heapUsed / 2 ** 20) }));
