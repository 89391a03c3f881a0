import { readConfig } from "../../../src/app/config.ts";
import { type Diagnosis, examine } from "../../../src/app/doctor/doctor.ts";
import { callPatient } from "../../../src/app/doctor/patient.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import type { World } from "../../support/world.ts";

export type Doctor = {
  patient: Awaited<ReturnType<typeof callPatient>>;
  look(...only: string[]): Promise<Diagnosis[]>;
  /** Ids of the invariants that it finds broken; throws if one could not be looked at. */
  broken(): Promise<string[]>;
  close(): Promise<void>;
};

export async function callDoctor(world: World): Promise<Doctor> {
  const objects = makeTemporaryFolder("punctual-doctor-");
  const patient = await callPatient(readConfig({ DATABASE_URL: world.url, PUNCTUAL_OBJECTS_DIR: objects }));
  const look = (...only: string[]) => examine(patient, () => undefined, only);
  return {
    patient,
    look,
    async broken() {
      const diagnoses = await look("invariant");
      const failed = diagnoses.find((one) => one.status === "failed");
      if (failed !== undefined) throw new Error(`${failed.id}: ${failed.sentence}`);
      return diagnoses.filter((one) => one.status === "finding").map((one) => one.id.slice("invariant-".length));
    },
    close: () => patient.release(),
  };
}
