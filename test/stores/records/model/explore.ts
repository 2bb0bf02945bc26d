import { realPause } from './stopped-clock.js';

/** Something that goes on by itself only as far as one of several actions must be chosen. */
export interface World {
  /** Names of what may happen next; none: it has ended. */
  actions(): string[];
  act(action: string): Promise<void>;
  /** @throws if a promise is broken. */
  check(): void;
  /** Worlds of the same state have the same future. */
  state(): string;
  /** Of a world without actions. @throws if a promise is broken. */
  end(): Promise<void>;
}

/**
 * Tries all orders of all actions, from the start each, and each state once.
 * @returns the number of states. @throws with the actions that lead to a broken promise.
 */
export async function explore(start: () => Promise<World>): Promise<number> {
  const states = new Set<string>();
  const paths: string[][] = [[]];
  for (let runs = 0, path = paths.pop(); path; runs++, path = paths.pop()) {
    try {
      if (runs % 100 === 0) await realPause();
      const world = await start();
      for (const action of path) await world.act(action);
      for (;;) {
        world.check();
        const state = world.state();
        if (states.has(state)) break;
        states.add(state);
        const [first, ...others] = world.actions();
        if (first === undefined) {
          await world.end();
          break;
        }
        for (const other of others) paths.push([...path, other]);
        path.push(first);
        await world.act(first);
      }
    } catch (cause) {
      throw new Error(`${cause instanceof Error ? cause.message : String(cause)}\nafter ${path.join(', ')}`, { cause });
    }
  }
  return states.size;
}
