/** Why a rule cannot be accepted, in words for whoever wrote it. `found` is their own text. */
export type RuleFault = {
  /** Path within the rule (`zone`, `expression`), or the cron field's name (`day-of-month`). */
  readonly field: string;
  readonly found: string;
  readonly message: string;
  readonly allowed: string;
  readonly suggestion?: string;
};

/** Thrown inside this folder only; `compileRule` turns it into a value. */
export class FaultyRule extends Error {
  readonly fault: RuleFault;
  constructor(fault: RuleFault) {
    super(fault.message);
    this.fault = fault;
  }
}

/** With its quotes it fits where values are shown on one line of 80, so it is not cut a second time. */
const LONGEST_QUOTE = 70;

/** Refuses a rule. Long texts are quoted in part: a fault travels into logs and answers. */
export function refuse(fault: RuleFault): never {
  const { found } = fault;
  throw new FaultyRule(
    found.length <= LONGEST_QUOTE ? fault : { ...fault, found: `${found.slice(0, LONGEST_QUOTE)}…` },
  );
}
