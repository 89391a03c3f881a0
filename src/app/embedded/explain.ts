import { operatorError } from "../../kernel/errors.ts";
import { portTaken } from "./port.ts";

/** Reads the last words of a server (or of initdb) that did not start, and says who must do what. */
export function explainFailedStart(server: string, port: number, directory: string | undefined, output: string): Error {
  const details = { output: output.slice(-2000), ...(directory === undefined ? {} : { directory }) };
  if (/address already in use/i.test(output)) return portTaken(port, server);
  if (/no space left on device|disk quota exceeded/i.test(output)) {
    return operatorError(
      "disk-full",
      `The disk is full: ${server} could not write to ${directory}. Free some space and start again.`,
      details,
    );
  }
  if (/permission denied|read-only file system|EACCES|EROFS/i.test(output)) {
    return operatorError(
      "no-permission",
      `${server} is not allowed to write to ${directory}. Give its owner write permission, or choose another directory.`,
      details,
    );
  }
  const said = output.split("\n").filter(Boolean).slice(-3).join(" / ");
  return operatorError("server-did-not-start", `${server} did not start. It said: ${said}`, details);
}
