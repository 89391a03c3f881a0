import type { Command } from "commander";
import { messageOf } from "../../kernel/errors.ts";
import type { Config } from "../config.ts";
import type { Diagnosis } from "../doctor/doctor.ts";
import type { Act } from "./act.ts";
import { printJson, printLine, visible } from "./print.ts";

const EXIT_OF = { ok: 0, findings: 1, unknown: 2 } as const;
type Outcome = keyof typeof EXIT_OF;

export function doctorCommand(program: Command, act: Act): void {
  program
    .command("doctor")
    .description("examine an installation, and say what to do")
    .option("--json", "print all diagnoses as JSON, one line")
    .addHelpText(
      "after",
      `
Looks at DATABASE_URL and REDIS_URL; without DATABASE_URL, at the running system of this checkout. It changes nothing.
Exit codes: 0 all is well, 1 there are findings, 2 something could not be checked.`,
    )
    .action(
      act(async (config, options: { json?: boolean }) => {
        const diagnoses = await diagnose(config, options.json ? () => {} : printDiagnosis);
        const outcome = outcomeOf(diagnoses);
        if (options.json) printJson(storable({ outcome, checks: diagnoses }));
        else printLine(summaryOf(outcome, diagnoses));
        return EXIT_OF[outcome];
      }),
    );
}

async function diagnose(config: Config, tell: (diagnosis: Diagnosis) => void): Promise<Diagnosis[]> {
  // Loaded when asked for, so that asking the API stays quick.
  const { callPatient } = await import("../doctor/patient.ts");
  const { examine } = await import("../doctor/doctor.ts");
  try {
    const patient = await callPatient(config);
    return await examine(patient, tell).finally(() => patient.release());
  } catch (error) {
    const diagnosis: Diagnosis = {
      check: "the installation to examine",
      status: "failed",
      sentence: messageOf(error),
    };
    tell(diagnosis);
    return [diagnosis];
  }
}

function outcomeOf(diagnoses: readonly Diagnosis[]): Outcome {
  if (diagnoses.some((one) => one.status === "finding")) return "findings";
  return diagnoses.some((one) => one.status === "failed") ? "unknown" : "ok";
}

const LABELS = { ok: "ok      ", skipped: "skipped ", finding: "FINDING ", failed: "UNKNOWN " } as const;

function printDiagnosis(diagnosis: Diagnosis): void {
  printLine(visible(`${LABELS[diagnosis.status]} ${diagnosis.check}: ${diagnosis.sentence}`));
  if (diagnosis.status !== "finding") return;
  printLine(visible(`         do: ${diagnosis.todo}`));
  for (const row of diagnosis.rows ?? []) printLine(visible(`         ${JSON.stringify(storable(row))}`));
}

function summaryOf(outcome: Outcome, diagnoses: readonly Diagnosis[]): string {
  const count = (status: Diagnosis["status"]) => diagnoses.filter((one) => one.status === status).length;
  if (outcome === "ok") return `All is well: ${count("ok")} checks.`;
  return `${count("finding")} findings, ${count("failed")} could not be checked, ${count("ok")} are well.`;
}

/** Fences and row ids are bigints, which JSON does not know; as text they lose nothing. */
function storable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item) => (typeof item === "bigint" ? String(item) : item)));
}
