import { expect, it } from "vitest";
import { isMediaType } from "../../src/objects/media-type.ts";

it.each([
  "text/html",
  "text/html; charset=utf-8",
  "application/vnd.ms-excel.sheet+xml",
  'multipart/form-data;boundary="a \\" b"; x=y',
])("%j is a media type", (text) => expect(isMediaType(text)).toBe(true));

it.each([
  "",
  "text",
  "text/",
  "/html",
  "text/html\r\nx-evil: 1",
  "text/html\n",
  "text/html; charset",
  "text/html; charset=utf-8;",
  'text/html; a="b',
  'text/html; a="b\r\n"',
  "tëxt/html",
  `text/${"x".repeat(200)}`,
  undefined,
  7,
])("%j is none", (text) => expect(isMediaType(text)).toBe(false));
