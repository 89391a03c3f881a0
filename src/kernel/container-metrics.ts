import { Counter, type Registry } from "prom-client";

/** Part of `createMetrics`. */
export function containerMetrics(registers: Registry[]) {
  return {
    containersAdopted: new Counter({
      name: "punctual_containers_adopted_total",
      help: "Containers whose worker had ended, and that this one watches on",
      registers,
    }),
    containersCleared: new Counter({
      name: "punctual_containers_cleared_total",
      help: "Containers of attempts that are over, removed by the cleanup",
      registers,
    }),
  };
}
