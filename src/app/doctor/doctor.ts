import { messageOf } from "../../kernel/errors.ts";
import type { Check, Patient, Verdict } from "./check.ts";
import { connectionCheck } from "./connection.ts";
import { cursorsCheck } from "./cursors.ts";
import { durabilityCheck } from "./durability.ts";
import { epochCheck } from "./epoch.ts";
import { faultsCheck } from "./faults.ts";
import { invariantChecks } from "./invariants.ts";
import { objectsCheck } from "./objects.ts";
import { outboxCheck } from "./outbox.ts";
import { partitionsCheck } from "./partitions.ts";
import { poolerCheck } from "./pooler.ts";
import { redisCheck } from "./redis.ts";
import { scannersCheck } from "./scanners.ts";
import { schemaCheck } from "./schema.ts";
import { tzDataCheck } from "./tz-data.ts";
import { workersCheck } from "./workers.ts";

/** Nothing else can be asked while one of these fails. */
const FIRST: readonly Check[] = [connectionCheck, schemaCheck];
const THEN: readonly Check[] = [
  epochCheck,
  partitionsCheck,
  durabilityCheck,
  poolerCheck,
  redisCheck,
  scannersCheck,
  workersCheck,
  cursorsCheck,
  faultsCheck,
  tzDataCheck,
  outboxCheck,
  objectsCheck,
  ...invariantChecks,
];

/** A verdict, or `failed`: the check could not look, and the sentence says why. */
export type Diagnosis = { check: string } & (Verdict | { status: "failed"; sentence: string });

/** Examines the patient, telling each diagnosis as soon as it is known. */
export async function examine(patient: Patient, tell: (diagnosis: Diagnosis) => void): Promise<Diagnosis[]> {
  const diagnoses: Diagnosis[] = [];
  const look = async (check: Check) => {
    const diagnosis = await lookOnce(check, patient);
    tell(diagnosis);
    diagnoses.push(diagnosis);
    return diagnosis.status === "ok";
  };
  for (const check of FIRST) if (!(await look(check))) return diagnoses;
  for (const check of THEN) await look(check);
  return diagnoses;
}

async function lookOnce(check: Check, patient: Patient): Promise<Diagnosis> {
  try {
    return { check: check.name, ...(await check.examine(patient)) };
  } catch (error) {
    return { check: check.name, status: "failed", sentence: messageOf(error) };
  }
}
