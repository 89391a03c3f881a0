import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

/** What the rules need to know of one file. `line` counts from 1; `path` is relative to the repository, with `/`. */
export type Source = {
  readonly path: string;
  readonly lines: number;
  readonly imports: readonly Found[];
  /** Things that depend on the surroundings, e.g. `Date.now`, `new Date()`, `process.env`. */
  readonly ambient: readonly Found[];
  readonly enums: readonly Found[];
  readonly defaultExports: readonly Found[];
  /** Tests that do not run, or keep others from running: `it.only`, `describe.skip`, `test.todo`. */
  readonly disabledTests: readonly Found[];
};

export type Found = { readonly what: string; readonly line: number };

type Node = { readonly type: string; readonly start: number };

const AMBIENT_MEMBERS = new Set(["Date.now", "Math.random", "process.env", "process.hrtime"]);
const AMBIENT_CALLS = new Set(["Date", "setTimeout", "setInterval", "setImmediate"]);
const TEST_FUNCTIONS = new Set(["it", "test", "describe", "suite", "bench"]);
const TEST_DISABLERS = new Set(["only", "skip", "todo"]);

/** `a.b.c` as ["a", "b", "c"]; empty when the chain does not start at a plain name. `globalThis` is looked through. */
function chainOf(node: unknown): string[] {
  const at = node as {
    type: string;
    name?: string;
    object?: unknown;
    property?: Node & { name?: string; value?: unknown };
    callee?: unknown;
    expression?: unknown;
  };
  if (at.type === "Identifier") return at.name === "globalThis" ? [] : [at.name ?? ""];
  if (at.type === "CallExpression") return chainOf(at.callee);
  if (at.type === "ParenthesizedExpression" || at.type === "ChainExpression") return chainOf(at.expression);
  if (at.type !== "MemberExpression") return [""];
  const name = at.property?.type === "Literal" ? String(at.property.value) : (at.property?.name ?? "");
  return [...chainOf(at.object), name];
}

/** Reads one file's text. Throws when it cannot be parsed. */
export function parseSource(path: string, text: string): Source {
  const parsed = parseSync(path, text);
  if (parsed.errors.length > 0) throw new Error(`${path}: ${parsed.errors[0]?.message}`);
  const lineOf = (offset: number) => text.slice(0, offset).split("\n").length;
  const found = (what: string, node: { start: number }): Found => ({ what, line: lineOf(node.start) });
  const imports: Found[] = [];
  const ambient: Found[] = [];
  const enums: Found[] = [];
  const defaultExports: Found[] = [];
  const disabledTests: Found[] = [];

  const importFrom = (source: { type: string; start: number; value?: unknown } | null) => {
    if (source !== null && typeof source.value === "string") imports.push(found(source.value, source));
  };
  new Visitor({
    ImportDeclaration: (node) => importFrom(node.source),
    ExportAllDeclaration: (node) => importFrom(node.source),
    ExportNamedDeclaration: (node) => {
      importFrom(node.source);
      if (node.specifiers.some((one) => "name" in one.exported && one.exported.name === "default")) {
        defaultExports.push(found("export { … as default }", node));
      }
    },
    ImportExpression: (node) => importFrom(node.source),
    TSImportType: (node) => importFrom(node.source),
    ExportDefaultDeclaration: (node) => {
      defaultExports.push(found("export default", node));
    },
    TSEnumDeclaration: (node) => {
      enums.push(found(`enum ${node.id.name}`, node));
    },
    NewExpression: (node) => {
      if (chainOf(node.callee).join(".") === "Date" && node.arguments.length === 0)
        ambient.push(found("new Date()", node));
    },
    CallExpression: (node) => {
      const chain = chainOf(node.callee);
      const name = chain.join(".");
      if (AMBIENT_CALLS.has(name)) ambient.push(found(`${name}()`, node));
      if (!TEST_FUNCTIONS.has(chain[0] ?? "")) return;
      const options = node.arguments.flatMap((one) => (one.type === "ObjectExpression" ? one.properties : []));
      for (const option of options) {
        const key = option.type === "Property" && option.key.type === "Identifier" ? option.key.name : "";
        if (TEST_DISABLERS.has(key)) disabledTests.push(found(`${chain[0]} with { ${key} }`, node));
      }
    },
    MemberExpression: (node) => {
      const chain = chainOf(node);
      const name = chain.join(".");
      if (AMBIENT_MEMBERS.has(name)) ambient.push(found(name, node));
      if (TEST_FUNCTIONS.has(chain[0] ?? "") && TEST_DISABLERS.has(chain.at(-1) ?? ""))
        disabledTests.push(found(name, node));
    },
  }).visit(parsed.program);
  return { path, lines: text.trimEnd().split("\n").length, imports, ambient, enums, defaultExports, disabledTests };
}

/** Every TypeScript and JavaScript file under `folders` of the repository at `root`, read and parsed. */
export function readSources(root: string, folders: readonly string[]): Source[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(m?[jt]s|tsx)$/.test(path) && !path.includes("node_modules"))
      .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
      .sort()
      .map((path) => parseSource(path, readFileSync(join(root, path), "utf8"))),
  );
}
