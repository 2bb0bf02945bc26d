import type { LatchChange, LatchDriver, LatchLook, LatchOperation, LatchState } from 'nestjs-distributed-lock/core';
import type { PlainData } from './plain-store.js';
import { pause } from './time.js';
import { random } from './random.js';

interface Done {
  readonly number: number;
  readonly reply: number | boolean;
  /** Until when a repeat may come. */
  readonly endsAt: number;
}

export interface PlainLatch {
  readonly id: string;
  count: number;
  round: number;
  endsAt: number;
  /** The last operation of each line. */
  readonly done: Map<string, Done>;
}

/** Each request is applied after a moment and answered after another one: in any order. */
export async function step<Reply>(apply: (time: number) => Reply): Promise<Reply> {
  await pause(random() * 4);
  const reply = apply(performance.now());
  await pause(random() * 4);
  return reply;
}

/** The count-down latch of the plain store: it wakes nobody. */
export class PlainLatchDriver implements LatchDriver {
  constructor(private readonly data: PlainData) {}

  trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    return step((time) => {
      const known = this.open(key, time);
      const last = known?.done.get(operation.line);
      if (last && last.number >= operation.number) return last.number === operation.number && last.reply === true;
      if (known && known.count > 0) return false;
      const latch = known ?? { id: `${operation.line}:${operation.number}`, count: 0, round: 0, endsAt: 0, done: new Map<string, Done>() };
      this.data.latches.set(key, latch);
      for (const [line, { endsAt }] of latch.done) if (endsAt <= time) latch.done.delete(line);
      latch.count = count;
      latch.round++;
      note(latch, operation, true, time + ttl);
      return true;
    });
  }

  countDown({ key, ttl, operation }: LatchChange): Promise<number> {
    return step((time) => {
      const latch = this.open(key, time);
      if (!latch) return 0;
      const last = latch.done.get(operation.line);
      if (last && last.number >= operation.number) return last.number === operation.number ? Number(last.reply) : latch.count;
      const before = latch.count;
      latch.count = Math.max(before - 1, 0);
      note(latch, operation, latch.count, time + ttl, before > 0);
      return latch.count;
    });
  }

  look({ key }: LatchLook): Promise<LatchState | undefined> {
    return step((time) => {
      const latch = this.open(key, time);
      return latch && { count: latch.count, id: latch.id, round: latch.round, remaining: latch.endsAt - time };
    });
  }

  leave(): Promise<void> {
    return step(() => undefined);
  }

  private open(key: string, time: number): PlainLatch | undefined {
    this.data.assertKind(key, time, 'count-down latch');
    return this.data.findLatch(key, time);
  }
}

function note(latch: PlainLatch, { line, number }: LatchOperation, reply: number | boolean, endsAt: number, isChange = true): void {
  latch.done.set(line, { number, reply, endsAt });
  if (isChange) latch.endsAt = Math.max(latch.endsAt, endsAt);
}
