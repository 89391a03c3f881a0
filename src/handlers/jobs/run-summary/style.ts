/** The report's whole look: system fonts, no external resource, light and dark. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #646c76; --line: #e3e6ea; --paper: #ffffff; --card: #f7f8fa;
  --accent: #2456c9; --succeeded: #2f9e6e; --failed: #d64545; --canceled: #9aa1ab; --skipped: #d9a429; --open: #5b86e5;
  --p50: #5b86e5; --p95: #d9a429; --p99: #d64545; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #9aa2ad; --line: #2c3138; --paper: #14171b;
  --card: #1b1f25; --accent: #8ab0ff; --succeeded: #46b889; --failed: #ee6c6c; --canceled: #7c848f; --skipped: #e0b64f;
  --open: #7ea2f2; --p50: #7ea2f2; --p95: #e0b64f; --p99: #ee6c6c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word; }
main { max-width: 920px; margin: 0 auto; padding: 48px 24px 64px; }
header { display: flex; flex-wrap: wrap; gap: 12px 24px; align-items: end; justify-content: space-between; }
h1 { font-size: 28px; line-height: 1.2; letter-spacing: -0.02em; margin: 0; }
h2 { font-size: 16px; margin: 44px 0 12px; letter-spacing: -0.01em; }
p { margin: 6px 0 0; } .soft { color: var(--soft); } .small { font-size: 13px; }
a.download { color: var(--accent); text-decoration: none; border: 1px solid var(--line); border-radius: 8px; padding: 7px 14px;
  font-weight: 550; font-size: 14px; white-space: nowrap; }
a.download:hover { border-color: var(--accent); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 32px 0 0; }
dl div { background: var(--card); border-radius: 12px; padding: 14px 16px; }
dt { color: var(--soft); font-size: 13px; } dd { margin: 2px 0 0; font-size: 24px; font-weight: 600; letter-spacing: -0.02em; }
dd + dd { font-size: 13px; font-weight: 400; color: var(--soft); letter-spacing: 0; }
svg { display: block; width: 100%; height: auto; }
.grid { stroke: var(--line); stroke-width: 1; } .tick { fill: var(--soft); font-size: 11px; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.hit { fill: transparent; } .hover:hover .hit { fill: var(--ink); opacity: 0.06; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.line-p95 { stroke-width: 2.4; } .line-p99 { stroke-width: 4.4; stroke-opacity: 0.75; }
${["succeeded", "failed", "canceled", "skipped", "open", "p50", "p95", "p99"]
  .map(
    (name) =>
      `.fill-${name} { fill: var(--${name}); } .line-${name} { stroke: var(--${name}); } .dot-${name} { background: var(--${name}); }`,
  )
  .join("\n")}
ul.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 0 0 10px; padding: 0; font-size: 13px; color: var(--soft); }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 6px; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 500; font-size: 13px; color: var(--soft); white-space: nowrap; }
th, td { padding: 8px 14px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; } td.number, th.number { text-align: right; } td.number, td.instant { white-space: nowrap; }
.number + td:not(.number), .number + th:not(.number) { padding-left: 14px; }
td.name { min-width: 160px; max-width: 340px; overflow-wrap: anywhere; } td.message { min-width: 200px; overflow-wrap: anywhere; color: var(--soft); } td.id { font: 12px/1.75 ui-monospace, monospace; color: var(--soft); white-space: nowrap; }
.empty { background: var(--card); border-radius: 12px; padding: 48px 24px; margin-top: 32px; text-align: center; color: var(--soft); }
footer { margin-top: 48px; padding-top: 16px; border-top: 1px solid var(--line); font-size: 13px; color: var(--soft); }
@media print { main { max-width: none; padding: 0; } a.download { display: none; } h2 { break-after: avoid; } svg, tr { break-inside: avoid; } }
`;
