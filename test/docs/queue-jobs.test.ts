import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { codeIn, root, tableIn } from "./table.ts";

const page = readFileSync(`${root}/docs/jobs.md`, "utf8");

it("docs/jobs.md quotes the consumers that tests run", () => {
  for (const name of ["bullmq-consumer", "amqp-consumer"]) {
    expect(page).toContain(`\`\`\`ts\n${readFileSync(`${root}/test/docs/${name}.ts`, "utf8")}\`\`\``);
  }
});

it("docs/jobs.md has every code by which deliveries fail, says which are for good, and has no other", () => {
  const folder = `${root}/src/handlers/queue`;
  const source = readdirSync(folder)
    .map((name) => readFileSync(`${folder}/${name}`, "utf8"))
    .join("\n");
  const thrown = new Map(
    [...source.matchAll(/(permanent|transient)Failure\(\s*"([a-z-]+)"/g)].map(([, kind, code]) => [code!, kind!]),
  );
  // By who issues callbacks.
  thrown.set("callback-unavailable", "permanent");
  const told = tableIn("docs/jobs.md", "what happens to a delivery").flatMap(([, code, then]) =>
    codeIn(code).map((name): [string, string] => [name, then!.startsWith("failed") ? "permanent" : "transient"]),
  );
  expect(new Map(told)).toEqual(thrown);
});

it("docs/jobs.md says every header of an AMQP message", () => {
  const source = readFileSync(`${root}/src/handlers/queue/amqp.ts`, "utf8");
  const names = /const values = \{([\s\S]*?)\};/.exec(source)![1]!.matchAll(/^ +"?([a-z-]+)"?:/gm);
  const told = tableIn("docs/jobs.md", "in `punctual`")
    .flatMap(([, header]) => codeIn(header))
    .map((name) => name.replace(/^x-punctual-/, "").replace(/^-/, "callback-"));
  expect(told.toSorted()).toEqual([...names].map(([, name]) => name!).toSorted());
});
