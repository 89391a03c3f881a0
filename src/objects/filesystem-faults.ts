import { operatorError } from "../kernel/errors.ts";

type Explanation = { code: string; message: string };

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ENOSPC: { code: "objects-disk-full", message: "The object store's disk is full: free space or grow the volume" },
  EDQUOT: { code: "objects-disk-full", message: "The object store's disk quota is used up: raise it or free space" },
  EACCES: { code: "objects-not-permitted", message: "The object store's directory may not be used by this user" },
  EPERM: {
    code: "objects-not-permitted",
    message: "The object store's directory refused: permission, or no hard links",
  },
  EROFS: { code: "objects-not-permitted", message: "The object store's directory is on a read-only file system" },
  EOPNOTSUPP: {
    code: "objects-no-hard-links",
    message: "The object store's file system has no hard links: use another",
  },
  ENOTSUP: { code: "objects-no-hard-links", message: "The object store's file system has no hard links: use another" },
  ENOTDIR: { code: "objects-not-a-directory", message: "The object store's path is not a directory" },
  EMFILE: { code: "objects-too-many-files", message: "Too many open files: raise the process's limit (ulimit -n)" },
};

export function isFsCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/**
 * An operator error for what the operating system refused; anything else (an upload's own source that threw, one of
 * our errors) comes back as it is.
 */
export function asFsFault(error: unknown, root: string): unknown {
  if (!isSystemError(error)) return error;
  const known = EXPLANATIONS[error.code] ?? { code: "objects-unavailable", message: "The object store cannot be used" };
  return operatorError(known.code, known.message, { root, cause: error.code, call: error.syscall }, error);
}

function isSystemError(error: unknown): error is Error & { code: string; syscall: string } {
  return error instanceof Error && "errno" in error && "code" in error && "syscall" in error;
}
