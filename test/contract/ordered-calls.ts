import '../support/virtual-time.js';
import { gate } from '../support/gate.js';
import { queued } from './misbehaviour.js';
import type { LocksOpener } from './open-locks.js';
import { outside } from './outside.js';
import { patient } from './setting.js';

/** A call that waits, or has got in. */
export interface Call {
  readonly ended: Promise<unknown>;
  /** Ends its work. */
  end(): void;
}

/** Calls of `using` whose order is the test's: the next one comes when this one has its queue entry. */
export class OrderedCalls {
  /** Who got in, in that order. */
  readonly entered: string[] = [];

  /** Resolves when the call has its queue entry, or is in. Its work goes on until it is ended. */
  async take(name: string, { open }: LocksOpener, key: string): Promise<Call> {
    const [placed, end] = [gate(), gate()];
    const locks = open({ misbehaving: queued(() => placed.open()) });
    const work = () => {
      this.entered.push(name);
      placed.open();
      return end.passed;
    };
    const call = outside(() => locks.using(key, work, patient));
    const ended = call.catch((error: unknown) => error).finally(() => placed.open());
    await placed.passed;
    return { ended, end: () => end.open() };
  }
}
