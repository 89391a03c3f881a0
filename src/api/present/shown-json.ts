import { mayHoldSealed, redactSealed } from "../../domain/secrets/forms.ts";

/**
 * Everything that leaves as JSON is written here, and no sealed secret is, wherever it stands: callers see that there is
 * one, and whether it is another than before.
 */
export function jsonOf(body: unknown): string {
  const text = JSON.stringify(body);
  return mayHoldSealed(text) ? JSON.stringify(redactSealed(JSON.parse(text))) : text;
}
