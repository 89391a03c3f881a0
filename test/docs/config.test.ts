import { expect, it } from "vitest";
import { CONFIG_DESCRIPTIONS, CONFIG_KEYS, readConfig } from "../../src/app/config.ts";
import { codeIn, tableIn } from "./table.ts";

it("docs/operations.md has every key with its default and what it is", () => {
  const defaults: Record<string, unknown> = readConfig({});
  const documented = tableIn("docs/operations.md", "key").map((row) => [codeIn(row[0])[0], row[1], row[2]]);
  expect(documented).toEqual(
    CONFIG_KEYS.map((key) => [key, String(defaults[key] ?? "–"), CONFIG_DESCRIPTIONS.get(key)]),
  );
});

it("a key that is no setting is refused by name", () => {
  expect(() => readConfig({ PUNCTUAL_SLOTS: "3" })).toThrow("PUNCTUAL_SLOTS: is no setting");
});

it("three heartbeats and the margin must fit in one lease", () => {
  expect(() => readConfig({ PUNCTUAL_LEASE_TTL_MS: "20000" })).toThrow(/PUNCTUAL_LEASE_TTL_MS: found 20000/);
});

it("a port that is none names its key, what was found and what is allowed", () => {
  expect(() => readConfig({ PUNCTUAL_PORT: "http" })).toThrow(/PUNCTUAL_PORT: found "http"/);
});

it.each([
  [{ PUNCTUAL_OBJECTS: "s3" }, "PUNCTUAL_S3_BUCKET: is not set"],
  [{ PUNCTUAL_S3_ACCESS_KEY: "id" }, "PUNCTUAL_S3_SECRET_KEY: is not set"],
  [{ PUNCTUAL_S3_KMS_KEY: "k" }, "PUNCTUAL_S3_KMS_KEY: is of use with"],
  [{ PUNCTUAL_S3_PREFIX: "no-slash" }, 'PUNCTUAL_S3_PREFIX: found "no-slash"; allowed: empty, or names'],
  [{ PUNCTUAL_OBJECTS: "tape" }, 'PUNCTUAL_OBJECTS: found "tape"'],
])("settings of the object store that make no sense are refused by name: %j", (given, words) => {
  expect(() => readConfig(given)).toThrow(words);
});
