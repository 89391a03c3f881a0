import { messageOf, PunctualError } from "../../kernel/errors.ts";
import { isStatementTimeout, sqlStateOf } from "../../store/sql-errors.ts";
import { containersCheck } from "../kinds/doctor-check.ts";
import { secretKeysCheck } from "../secrets/doctor-check.ts";
import type { Check, Patient, Verdict } from "./check.ts";
import { connectionCheck } from "./connection.ts";
import { cursorsCheck } from "./cursors.ts";
import { durabilityCheck } from "./durability.ts";
import { effectsDueCheck, effectsUncertainCheck, webhooksDueCheck } from "./effects.ts";
import { endsCheck } from "./ends.ts";
import { epochCheck } from "./epoch.ts";
import { faultsCheck } from "./faults.ts";
import { invariantChecks } from "./invariants/invariants.ts";
import { objectsCheck } from "./objects.ts";
import { outboxCheck } from "./outbox.ts";
import { partitionsCheck } from "./partitions.ts";
import { poolerCheck } from "./pooler.ts";
import { redisCheck } from "./redis.ts";
import { scannersCheck } from "./scanners.ts";
import { schemaCheck } from "./schema.ts";
import { wallCheck } from "./security/wall.ts";
import { standbyCheck } from "./standby.ts";
import { tzDataCheck } from "./tz-data.ts";
import { workersCheck } from "./workers.ts";

/** Nothing else can be asked while one of these fails. */
const FIRST: readonly Check[] = [connectionCheck, schemaCheck];
const THEN: readonly Check[] = [
  standbyCheck,
  epochCheck,
  partitionsCheck,
  durabilityCheck,
  poolerCheck,
  wallCheck,
  redisCheck,
  scannersCheck,
  workersCheck,
  cursorsCheck,
  faultsCheck,
  tzDataCheck,
  secretKeysCheck,
  containersCheck,
  outboxCheck,
  endsCheck,
  effectsDueCheck,
  effectsUncertainCheck,
  webhooksDueCheck,
  objectsCheck,
  ...invariantChecks,
];

/** What `--only` may name: a check, or the beginning of several (`invariant`, `invariant-5`). */
export const CHECK_IDS: readonly string[] = [...FIRST, ...THEN].map((check) => check.id);

export function isNamed(id: string, only: readonly string[]): boolean {
  return only.length === 0 || only.some((name) => id === name || id.startsWith(`${name}-`));
}

/** A verdict, or `failed`: the check could not look, and the sentence says why. */
export type Diagnosis = { id: string; check: string } & (
  | Verdict
  | { status: "failed"; sentence: string; todo: string }
);

/** Examines the patient (`only`: by these checks; none means all), telling each diagnosis as soon as it is known. */
export async function examine(
  patient: Patient,
  tell: (diagnosis: Diagnosis) => void,
  only: readonly string[] = [],
): Promise<Diagnosis[]> {
  const diagnoses: Diagnosis[] = [];
  const look = async (check: Check) => {
    const diagnosis = { id: check.id, check: check.name, ...(await lookOnce(check, patient)) };
    const isWell = diagnosis.status === "ok";
    if (isNamed(check.id, only) || (!isWell && FIRST.includes(check))) {
      tell(diagnosis);
      diagnoses.push(diagnosis);
    }
    return isWell;
  };
  for (const check of FIRST) if (!(await look(check))) return diagnoses;
  for (const check of THEN) if (isNamed(check.id, only)) await look(check);
  return diagnoses;
}

async function lookOnce(check: Check, patient: Patient) {
  try {
    return await check.examine(patient);
  } catch (error) {
    return { status: "failed" as const, sentence: messageOf(error), todo: remedyOf(error) };
  }
}

/** Why it could not look is another matter than what it looked for. */
export function remedyOf(error: unknown): string {
  if (error instanceof PunctualError && error.code === "not-running") return "npm start, or set DATABASE_URL";
  if (sqlStateOf(error) === "42501") return "look as the role that owns the tables, or as a member of pg_read_all_data";
  if (isStatementTimeout(error)) return "the server had no answer within 5 s: look again when it has less to do";
  return "see that PostgreSQL is up and DATABASE_URL names it, then look again";
}
