import { z } from "zod";
import { parseImage } from "../containers/image.ts";
import { FEW_PLACEHOLDERS, hasFewPlaceholders, JOB_PLACEHOLDERS, unknownJobPlaceholders } from "./template.ts";

/** Variables with this beginning say which attempt it is; a job cannot set them. */
export const OWN_VARIABLES = "PUNCTUAL_";
/** A container's only place for a result file: a volume of its own, which outlives its processes. */
export const RESULT_FOLDER = "/result";

const LONGEST_TEXT = 8_192;
/** Bytes of env, command and args, filled in or not: an engine keeps them as part of the container's description. */
export const MOST_TOGETHER = 256 * 1024;

/** A text with placeholders: secrets come from the payload, so that none need stand here. */
const template = z
  .string()
  .max(LONGEST_TEXT, { abort: true })
  .superRefine((text, issues) => {
    const unknown = unknownJobPlaceholders(text);
    if (unknown.length === 0) return;
    issues.addIssue({
      code: "custom",
      message: `{{${unknown[0]}}} is no placeholder; allowed: ${JOB_PLACEHOLDERS.join(", ")}`,
    });
  })
  .refine((text) => !text.includes("\0"), { error: "allowed: text without NUL" });

const words = z.array(template).max(100);
const absolute = z
  .string()
  .max(1_000)
  .regex(/^\/[^\0]*$/, { error: "allowed: an absolute path" });

const mediaType = z
  .string()
  .max(200)
  .regex(/^[\w.+-]+\/[\w.+-]+(; ?[\w-]+=[\w.:+-]+)*$/, { error: "allowed: such as text/csv; charset=utf-8" });

const result = z
  .discriminatedUnion("from", [
    z.strictObject({ from: z.literal("none") }),
    z.strictObject({ from: z.literal("stdout"), mediaType: mediaType.default("text/plain; charset=utf-8") }),
    z.strictObject({
      from: z.literal("file"),
      path: z
        .string()
        .max(300)
        .regex(/^\/result\/(?!\.{1,2}(\/|$))[^/\0]+(\/(?!\.{1,2}(\/|$))[^/\0]+)*$/, {
          error: `allowed: a file below ${RESULT_FOLDER}, such as ${RESULT_FOLDER}/report.csv`,
        }),
      mediaType: mediaType.default("application/octet-stream"),
    }),
  ])
  .default({ from: "none" })
  .describe("What becomes the run's result: nothing, what it wrote to stdout, or one file");

const exitCode = z.int().min(1).max(255);

/** A container of the tenant's own image. */
export const containerJobSchema = z
  .strictObject({
    kind: z.literal("container"),
    image: z
      .string()
      .max(500)
      .refine((text) => parseImage(text) !== undefined, {
        error: "allowed: an image's name, such as registry.example.com/team/app:1.2 or …/app@sha256:…",
      })
      .describe("As the engine knows it; without a registry it is one of docker.io"),
    command: words.optional().describe("In place of the image's entrypoint"),
    args: words.optional().describe("In place of the image's own arguments"),
    env: z
      .record(
        z
          .string()
          .max(200)
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: "allowed: letters, digits and _" })
          .refine((name) => !name.startsWith(OWN_VARIABLES), { error: `${OWN_VARIABLES}… is set by the worker` }),
        template,
      )
      .refine((env) => Object.keys(env).length <= 100, { error: "allowed: at most 100 variables" })
      .default({})
      .describe("Values may have placeholders such as {{payload.token}}: secrets belong into the payload"),
    workdir: absolute.optional(),
    user: z
      .string()
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/, {
        error: "allowed: user or user:group, names or numbers",
      })
      .optional()
      .describe("In place of the image's user; on Kubernetes numbers"),
    resources: z
      .strictObject({
        cpu: z.number().min(0.01).max(256).default(1).describe("Cores"),
        memoryMb: z.int().min(6).max(1_048_576).default(256).describe("MiB, swap included"),
        pids: z.int().min(1).max(32_768).default(256).describe("Processes and threads"),
        tmpMb: z.int().min(0).max(65_536).default(64).describe("MiB of /tmp, which is in memory"),
      })
      .prefault({}),
    network: z
      .string()
      .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/)
      .default("none")
      .describe("`none`, or one that the operator allows"),
    ulimits: z
      .strictObject({
        nofile: z.int().min(16).max(1_048_576).default(1_024).describe("Open files of a process"),
        nproc: z
          .int()
          .min(1)
          .max(65_536)
          .default(4_096)
          .describe("Processes of the container's user on the whole machine"),
      })
      .prefault({}),
    readOnlyRoot: z.boolean().default(true).describe("Only /tmp, and /result for a file, can be written"),
    result,
    permanentExitCodes: z
      .array(exitCode)
      .max(255)
      .default([])
      .describe("Exit codes after which trying again cannot help; after others it may"),
    retryOutOfMemory: z
      .boolean()
      .default(false)
      .describe("Try again what the memory limit has ended; by default it would only end so again"),
    stopGraceMs: z.int().min(0).max(300_000).default(10_000).describe("From SIGTERM to SIGKILL, when it is to stop"),
    pull: z
      .enum(["missing", "always", "never"])
      .default("missing")
      .describe("When the image is fetched from its registry"),
  })
  .refine(
    ({ env, command = [], args = [] }) =>
      Buffer.byteLength([...Object.values(env), ...command, ...args].join("")) <= MOST_TOGETHER,
    `at most ${MOST_TOGETHER} bytes of env, command and args together`,
  )
  .refine(hasFewPlaceholders, FEW_PLACEHOLDERS);
export type ContainerJob = z.infer<typeof containerJobSchema>;
