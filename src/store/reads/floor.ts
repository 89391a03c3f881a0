/** For those who only read. */
export { readFloor } from "../rows/floor.ts";
