const EXTENSIONS: Readonly<Record<string, string>> = {
  "text/html": ".html",
  "text/csv": ".csv",
  "text/plain": ".txt",
  "application/json": ".json",
  "application/zip": ".zip",
  "application/pdf": ".pdf",
};

/** How a run's result is called when somebody saves it. */
export function fileNameOf(run: string, mediaType: string | null): string {
  return run + (EXTENSIONS[(mediaType ?? "").split(";")[0]!.trim().toLowerCase()] ?? "");
}
