import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const REPORT = new URL("vector-report.ts", import.meta.url).pathname;

it.each([
  ["UTC", 0],
  ["Australia/Sydney", 660],
  ["America/Sao_Paulo", -180],
  ["Australia/Lord_Howe", 660],
])("B19 no instant depends on the process's own zone (TZ=%s)", async (TZ, januaryOffsetMinutes) => {
  const { stdout } = await promisify(execFile)(process.execPath, [REPORT], { env: { ...process.env, TZ } });
  const report = JSON.parse(stdout) as { checked: number };
  expect(report).toMatchObject({ wrong: [], januaryOffsetMinutes });
  expect(report.checked).toBeGreaterThan(300);
});
