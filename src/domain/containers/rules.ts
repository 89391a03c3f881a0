import type { ContainerJob } from "../jobs/container.ts";
import { matchesImage, parseImage } from "./image.ts";

/** What an operator lets containers be; the API holds new work to it, and workers hold all work. */
export type ContainerRules = {
  /** Patterns; none: no image is allowed. */
  images: readonly string[];
  networks: readonly string[];
  maxMemoryMb: number;
  maxCpu: number;
  /** Whether a file can be taken out of a container. */
  files: boolean;
  /** Whether users and groups have to be numbers. */
  numericUsers: boolean;
};

export type ContainerFault = {
  code: "image-not-allowed" | "container-not-allowed";
  field: string;
  message: string;
  found: string | number;
  allowed: string;
};

const NUMBERS = /^\d+(:\d+)?$/;

/** The first thing in the job that the rules do not allow. */
export function judgeContainer(job: ContainerJob, rules: ContainerRules): ContainerFault | undefined {
  const { image, network, resources, result, user } = job;
  const parsed = parseImage(image);
  if (parsed === undefined || !rules.images.some((pattern) => matchesImage(pattern, parsed))) {
    const allowed = rules.images.join(", ") || "none: the operator has allowed no images";
    return {
      code: "image-not-allowed",
      field: "job.image",
      message: "is not on the list of images",
      found: image,
      allowed,
    };
  }
  const refuse = (field: string, message: string, found: string | number, allowed: string): ContainerFault => ({
    code: "container-not-allowed",
    field: `job.${field}`,
    message,
    found,
    allowed,
  });
  if (!rules.networks.includes(network)) {
    return refuse("network", "is none of this installation's", network, rules.networks.join(", "));
  }
  if (resources.memoryMb > rules.maxMemoryMb) {
    return refuse(
      "resources.memoryMb",
      "is too much for a container",
      resources.memoryMb,
      `at most ${rules.maxMemoryMb}`,
    );
  }
  if (resources.tmpMb > rules.maxMemoryMb) {
    return refuse("resources.tmpMb", "is too much for a container", resources.tmpMb, `at most ${rules.maxMemoryMb}`);
  }
  if (resources.cpu > rules.maxCpu) {
    return refuse("resources.cpu", "is too much for a container", resources.cpu, `at most ${rules.maxCpu}`);
  }
  if (result.from === "file" && !rules.files) {
    return refuse("result.from", "cannot be had from this installation's engine", "file", "none, stdout");
  }
  if (user !== undefined && rules.numericUsers && !NUMBERS.test(user)) {
    return refuse("user", "has to be numbers on this installation's engine", user, "such as 1000 or 1000:1000");
  }
  return undefined;
}
