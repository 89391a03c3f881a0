import { runCli } from "./cli/program.ts";
import { environment } from "./config.ts";

// `punctual runs list | head`: whoever reads has read enough.
process.stdout.on("error", () => process.exit(0));

// Ended by name, not by emptiness: a stopped role may leave a timer or a socket of a library behind.
process.exit(await runCli(process.argv.slice(2), environment()));
