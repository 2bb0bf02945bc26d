import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Counts those of many objects that are still reachable. */
export class GarbageCount {
  private readonly references: WeakRef<object>[] = [];

  add(object: object): void {
    this.references.push(new WeakRef(object));
  }

  async reachable(): Promise<number> {
    // What was looked at through a WeakRef stays until the end of the iteration.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return this.references.filter((reference) => reference.deref()).length;
  }
}
