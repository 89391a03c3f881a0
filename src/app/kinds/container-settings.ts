import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { ContainerRules } from "../../domain/containers/rules.ts";
import type { Config } from "../config.ts";

const wordsOf = (text: string) => text.split(/[\s,]+/).filter((one) => one !== "");
const all = (allowed: RegExp) => (found: string) => wordsOf(found).every((one) => allowed.test(one));

const number = (min: number, max: number, fallback: number) => {
  const error = `allowed: a number from ${min} to ${max}`;
  return z.coerce.number({ error }).min(min, { error }).max(max, { error }).default(fallback);
};

/** What container jobs need; without an engine there are none. Part of src/app/config.ts. */
export const containerSettings = {
  PUNCTUAL_CONTAINER_ENGINE: z
    .enum(["docker", "kubernetes"])
    .optional()
    .describe("What runs container jobs; `docker` is Podman too. Without it they are refused"),
  PUNCTUAL_CONTAINER_HOST: z
    .string()
    .regex(/^(unix:\/\/\/.+|https?:\/\/[^/@]+)$/, {
      error: "allowed: such as unix:///run/podman/podman.sock or https://engine.example.com:2376",
    })
    .default("unix:///var/run/docker.sock")
    .describe("Where the engine's API is, with PUNCTUAL_CONTAINER_ENGINE=docker"),
  PUNCTUAL_CONTAINER_TLS_DIR: z
    .string()
    .optional()
    .describe("Folder with `ca.pem`, `cert.pem` and `key.pem`, required with an https:// host"),
  PUNCTUAL_CONTAINER_IMAGES: z
    .string()
    .refine(all(/^[\w.*:/@-]{1,500}$/), {
      error: "allowed: names of images with * for any characters, apart by spaces",
    })
    .optional()
    .transform((text) => (text === undefined ? undefined : wordsOf(text)))
    .describe(
      "Images that jobs may use, such as `registry.example.com/team/* registry.example.com/tools/*@sha256:*`; none without it",
    ),
  PUNCTUAL_CONTAINER_NETWORKS: z
    .string()
    .refine(all(/^[a-zA-Z0-9][\w.-]{0,62}$/), { error: "allowed: names of networks, apart by spaces" })
    .default("none")
    .transform(wordsOf)
    .describe("Networks that jobs may use beside `none`, such as `bridge`"),
  PUNCTUAL_CONTAINER_MEMORY_MB: number(16, 1_048_576, 2_048).describe("Most memory of one container, in MiB"),
  PUNCTUAL_CONTAINER_CPU: number(0.01, 256, 2).describe("Most cores of one container"),
  PUNCTUAL_CONTAINER_RESULT_MB: number(1, 10_240, 256).describe(
    "Largest result that is taken out of a container, in MiB; by stdout it is 16 at most",
  ),
  PUNCTUAL_CONTAINER_ADOPT_MS: number(0, 3_600_000, 300_000).describe(
    "How long a container whose worker was stopped may wait for the next worker; 0: it is stopped with its worker",
  ),
  PUNCTUAL_CONTAINER_REGISTRIES: z
    .string()
    .optional()
    .describe("File with accounts at registries, `auths` as in Docker's config.json"),
  PUNCTUAL_CONTAINER_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9]{1,16}$/, { error: "allowed: 1 to 16 lower case letters and digits" })
    .optional()
    .describe("Marks the containers of this installation (default: made of the database's identity)"),
  PUNCTUAL_CONTAINER_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
    .default("punctual-jobs")
    .describe("Namespace of jobs on Kubernetes"),
  PUNCTUAL_CONTAINER_PULL_SECRET: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/)
    .optional()
    .describe("Secret of that namespace with accounts at registries"),
  PUNCTUAL_CONTAINER_KUBECONFIG: z
    .string()
    .optional()
    .describe("Kubeconfig file of the cluster (default: the service account of the Pod that the worker runs in)"),
};

type Configured = Pick<Config, keyof typeof containerSettings>;

const TLS_FILES = ["ca.pem", "cert.pem", "key.pem"];

export function findContainerFault(config: Configured): { key: string; what: string } | undefined {
  const { PUNCTUAL_CONTAINER_ENGINE: engine, PUNCTUAL_CONTAINER_TLS_DIR: tls } = config;
  if (engine === undefined && config.PUNCTUAL_CONTAINER_IMAGES !== undefined) {
    return {
      key: "PUNCTUAL_CONTAINER_ENGINE",
      what: "is not set; PUNCTUAL_CONTAINER_IMAGES is of use with an engine only",
    };
  }
  if (engine !== "docker") return undefined;
  const isHttps = config.PUNCTUAL_CONTAINER_HOST.startsWith("https:");
  if (isHttps !== (tls !== undefined)) {
    return {
      key: "PUNCTUAL_CONTAINER_TLS_DIR",
      what: `is ${isHttps ? "not " : ""}set; it belongs to an https:// PUNCTUAL_CONTAINER_HOST`,
    };
  }
  const missing = tls === undefined ? undefined : TLS_FILES.find((file) => !existsSync(join(tls, file)));
  return missing === undefined ? undefined : { key: "PUNCTUAL_CONTAINER_TLS_DIR", what: `has no ${missing}` };
}

/** Undefined: this installation runs no containers. */
export function containerRulesOf(config: Configured): ContainerRules | undefined {
  const { PUNCTUAL_CONTAINER_ENGINE: engine } = config;
  if (engine === undefined) return undefined;
  return {
    images: config.PUNCTUAL_CONTAINER_IMAGES ?? [],
    networks: [...new Set(["none", ...config.PUNCTUAL_CONTAINER_NETWORKS])],
    maxMemoryMb: config.PUNCTUAL_CONTAINER_MEMORY_MB,
    maxCpu: config.PUNCTUAL_CONTAINER_CPU,
    files: engine === "docker",
    numericUsers: engine === "kubernetes",
  };
}
