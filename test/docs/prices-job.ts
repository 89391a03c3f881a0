import { z } from "zod";
import { defineThreadJob } from "../../src/handlers/registry.ts";

export const simulatePrices = defineThreadJob({
  name: "prices.simulate",
  version: 1,
  input: z.strictObject({ price: z.number(), volatility: z.number(), paths: z.int().max(10_000_000) }),
  module: new URL("./simulate-prices.ts", import.meta.url).href,
});
