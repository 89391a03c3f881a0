import type { Command } from "commander";
import { messageOf } from "../../kernel/errors.ts";
import type { Config } from "../config.ts";
import type { Diagnosis } from "../doctor/doctor.ts";
import type { Act } from "./act.ts";
import { printJson, printLine, visible } from "./print.ts";
import { UsageError } from "./usage.ts";

const EXIT_OF = { ok: 0, findings: 1, unknown: 2 } as const;
type Outcome = keyof typeof EXIT_OF;

const INSTALLATION = "installation";

type Options = { json?: boolean; quiet?: boolean; only?: string[] };

export function doctorCommand(program: Command, act: Act): void {
  program
    .command("doctor")
    .description("examine an installation, and say what to do")
    .option("--json", "print all diagnoses as JSON, one line")
    .option("--quiet", "print only what is wrong, and nothing if all is well")
    .option("--only <checks...>", "only these checks, by id or by how it begins (invariant, invariant-5)")
    .addHelpText(
      "after",
      `
Looks at DATABASE_URL and REDIS_URL; without DATABASE_URL, at the running system of this checkout. It changes nothing, and
may run beside everything else at any time.
Exit codes: 0 all is well, 1 there are findings, 2 something, or all of it, could not be checked (and
nothing was found).

Examples:
  punctual doctor
  punctual doctor --quiet                     in cron: mail comes only when something is wrong
  punctual doctor --only invariant --json     the promises alone, in CI`,
    )
    .action(
      act(async (config, { json = false, quiet = false, only = [] }: Options) => {
        const tell = json ? () => {} : quiet ? printIfWrong : printDiagnosis;
        const diagnoses = await diagnose(config, tell, only);
        const outcome = outcomeOf(diagnoses);
        if (json) printJson(storable({ outcome, checks: quiet ? diagnoses.filter(isWrong) : diagnoses }));
        else if (!quiet || outcome !== "ok") printLine(summaryOf(outcome, diagnoses));
        return EXIT_OF[outcome];
      }),
    );
}

async function diagnose(
  config: Config,
  tell: (diagnosis: Diagnosis) => void,
  only: readonly string[],
): Promise<Diagnosis[]> {
  // Loaded when asked for, so that asking the API stays quick.
  const { callPatient } = await import("../doctor/patient.ts");
  const { CHECK_IDS, examine, isNamed, remedyOf } = await import("../doctor/doctor.ts");
  const unknown = only.find((name) => !CHECK_IDS.some((id) => isNamed(id, [name])));
  if (unknown !== undefined) {
    throw new UsageError(
      `--only: found "${unknown}"; allowed: ${CHECK_IDS.join(", ")}, or how several begin (invariant, invariant-5)`,
    );
  }
  try {
    const patient = await callPatient(config);
    return await examine(patient, tell, only).finally(() => patient.release());
  } catch (error) {
    const diagnosis: Diagnosis = {
      id: INSTALLATION,
      check: "the installation to examine",
      status: "failed",
      sentence: messageOf(error),
      todo: remedyOf(error),
    };
    tell(diagnosis);
    return [diagnosis];
  }
}

function outcomeOf(diagnoses: readonly Diagnosis[]): Outcome {
  if (diagnoses.some((one) => one.status === "finding")) return "findings";
  const isUnknown = diagnoses.some((one) => one.status === "failed") || !diagnoses.some((one) => one.status === "ok");
  return isUnknown ? "unknown" : "ok";
}

const LABELS = { ok: "ok      ", skipped: "skipped ", finding: "FINDING ", failed: "UNKNOWN " } as const;
const INDENT = " ".repeat(9);

function isWrong({ status }: Diagnosis): boolean {
  return status === "finding" || status === "failed";
}

function printIfWrong(diagnosis: Diagnosis): void {
  if (isWrong(diagnosis)) printDiagnosis(diagnosis);
}

function printDiagnosis(diagnosis: Diagnosis): void {
  printLine(visible(`${LABELS[diagnosis.status]} ${diagnosis.check}: ${diagnosis.sentence}`));
  if (diagnosis.status === "finding") printLine(visible(`${INDENT}so: ${diagnosis.consequence}`));
  if ("todo" in diagnosis) printLine(visible(`${INDENT}do: ${diagnosis.todo}`));
  if (isWrong(diagnosis)) printLine(visible(`${INDENT}look again: punctual doctor${onlyThis(diagnosis)}`));
  if (diagnosis.status !== "finding") return;
  for (const row of diagnosis.rows ?? []) printLine(visible(`${INDENT}${JSON.stringify(storable(row))}`));
}

/** What was found before any check is no check, so that `--only` cannot name it. */
function onlyThis({ id }: Diagnosis): string {
  return id === INSTALLATION ? "" : ` --only ${id}`;
}

function summaryOf(outcome: Outcome, diagnoses: readonly Diagnosis[]): string {
  const count = (status: Diagnosis["status"]) => diagnoses.filter((one) => one.status === status).length;
  if (outcome === "ok") return `All is well: ${count("ok")} checks.`;
  if (diagnoses.every((one) => one.status === "skipped")) return "Nothing was checked.";
  return `${count("finding")} findings, ${count("failed")} could not be checked, ${count("ok")} are well.`;
}

/** Fences and row ids are bigints, which JSON does not know; as text they lose nothing. */
function storable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item) => (typeof item === "bigint" ? String(item) : item)));
}
