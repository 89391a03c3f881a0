import { type Definition, definitionSchema } from "../../../domain/definition.ts";

const DEFINITION_FIELDS = Object.keys(definitionSchema.shape);

/** Takes the definition's fields out of a flat body. */
export function definitionOf(body: Definition): Definition {
  return Object.fromEntries(Object.entries(body).filter(([field]) => DEFINITION_FIELDS.includes(field))) as Definition;
}
