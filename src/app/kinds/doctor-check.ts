import { systemClock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import { type Check, finding, ok, skipped } from "../doctor/check.ts";
import { openEngine } from "./containers.ts";

export const containersCheck: Check = {
  id: "containers",
  name: "the engine of container jobs answers",
  async examine({ config }) {
    if (config.PUNCTUAL_CONTAINER_ENGINE === undefined)
      return skipped(
        "no container engine is configured in this shell: set the same PUNCTUAL_CONTAINER_… as the workers, if they have one",
      );
    const images = config.PUNCTUAL_CONTAINER_IMAGES ?? [];
    try {
      const name = await (await openEngine(config, systemClock)).ping();
      if (images.length > 0) return ok(`${name}; ${images.length} patterns of images are allowed`);
    } catch (error) {
      return finding(
        messageOf(error),
        "attempts of container jobs fail as engine-unavailable and are tried again",
        "start the engine, or correct PUNCTUAL_CONTAINER_HOST or PUNCTUAL_CONTAINER_KUBECONFIG; look from where workers run",
      );
    }
    return finding(
      "no image is allowed",
      "all container jobs are refused",
      "set PUNCTUAL_CONTAINER_IMAGES, the same for api and worker",
    );
  },
};
