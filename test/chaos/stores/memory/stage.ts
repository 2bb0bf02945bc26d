import type { Stage } from '../store.js';

/** No server: the store lives in the memory of its worker, which shares it with nobody. */
export async function startStage(): Promise<Stage> {
  return {
    isPrivate: true,
    faults: [],
    target: () => ({}),
    leftovers: async () => [],
    stop: async () => undefined,
  };
}
