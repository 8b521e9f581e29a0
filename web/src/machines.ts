// The machines that a run was made on, if there are several.

import { count, quantity } from "./format";
import type { Page } from "./generated/page";

/** What a machine is called: by its host name, or by its number if it has none. */
export function machineName(page: Page, index: number): string {
  return page.machines[index]?.machine.name || `machine ${index + 1}`;
}

/** A row for each machine, with what distinguishes it and how many trials it ran; none if there is only one. */
export function machines(page: Page): [string, string][] {
  if (page.machines.length < 2) return [];
  return page.machines.map(({ machine, trials }, index) => {
    const { kernel, cpu, cores, memory_bytes } = machine;
    const parts = [
      kernel,
      cpu,
      count(cores, "core"),
      quantity(memory_bytes, "B"),
      count(trials, "trial"),
    ];
    return [machineName(page, index), parts.join(", ")];
  });
}
