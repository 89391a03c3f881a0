import { readHandedOver, startNode } from "../support/system.ts";
import { JOBS } from "./jobs.ts";

/** A process of its own for spawnNode: it can be killed without a word. */
const { options, directory } = readHandedOver(process.env.PUNCTUAL_TEST_NODE!);
const node = await startNode({ ...options, directory, jobs: JOBS });
process.on("SIGTERM", () => void node.stop().then(() => process.exit(0)));
process.once("disconnect", () => process.exit(1));
process.send!("started");
