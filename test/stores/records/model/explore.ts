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

export interface Explored {
  readonly states: number;
  /** Orders in which all actions can happen. */
  readonly interleavings: number;
  /** Worlds that were begun. */
  readonly runs: number;
}

/** Tries all orders of all actions, from the start each, and each state once. @throws with the actions that lead to a broken promise. */
export async function explore(start: () => Promise<World>): Promise<Explored> {
  const next = new Map<string, Set<string>>();
  const paths: { readonly path: readonly string[]; readonly from: string | undefined }[] = [{ path: [], from: undefined }];
  let runs = 0;
  let root = '';
  for (let branch = paths.pop(); branch; branch = paths.pop()) {
    const path = [...branch.path];
    let { from } = branch;
    try {
      if (runs % 100 === 0) await realPause();
      const world = await start();
      runs++;
      for (const action of path) await world.act(action);
      for (;;) {
        world.check();
        const state = world.state();
        if (from === undefined) root = state;
        else next.get(from)!.add(`${path.at(-1)}\n${state}`);
        if (next.has(state)) break;
        next.set(state, new Set());
        from = state;
        const [first, ...others] = world.actions();
        if (first === undefined) {
          await world.end();
          break;
        }
        for (const other of others) paths.push({ path: [...path, other], from });
        path.push(first);
        await world.act(first);
      }
    } catch (cause) {
      throw new Error(`${cause instanceof Error ? cause.message : String(cause)}\nafter ${path.join(', ')}`, { cause });
    }
  }
  return { states: next.size, interleavings: countPaths(next, root), runs };
}

function countPaths(next: ReadonlyMap<string, ReadonlySet<string>>, root: string): number {
  const counts = new Map<string, number>();
  const count = (state: string): number => {
    const known = counts.get(state);
    if (known !== undefined) return known;
    let sum = 0;
    for (const edge of next.get(state)!) sum += count(edge.slice(edge.indexOf('\n') + 1));
    counts.set(state, Math.max(sum, 1));
    return counts.get(state)!;
  };
  return count(root);
}
