import type { Stage } from '../store.js';

/** No server: the store lives in the memory of its worker, which shares it with nobody. */
export async function startStage(): Promise<Stage> {
  return {
    isShared: false,
    faults: [],
    proxies: [],
    target: () => ({}),
    heal: async () => undefined,
    leftovers: async () => [],
    stop: async () => undefined,
  };
}
