// What a Redis server should hold of count-down latches, and answer: written from the protocol's description, not from the scripts.

import type { Caller as Waiter } from './queue.model.js';

export interface Operation {
  readonly line: string;
  readonly number: number;
}

export interface Latch {
  readonly id: string;
  count: number;
  round: number;
  /** Milliseconds: the longest that anybody has said. */
  ttl: number;
  readonly waiters: Map<string, Waiter>;
  /** The last operation of each line, by its number, and what it was answered. */
  readonly latest: Map<string, number>;
  readonly answer: Map<string, number>;
}

export class LatchModel {
  latch: Latch | undefined;
  /** Processes that listen. */
  readonly listening = new Set<string>();
  /** What was said since the last look: `[inbox, owner]`. */
  said: [string, string][] = [];
  /** Which operation counted on which latch. */
  made: string[] = [];

  trySetCount(count: number, ttl: number, operation: Operation): number {
    if (this.isRepeat(operation)) return this.latch!.answer.get(operation.line)!;
    if (this.isLate(operation) || (this.latch && this.latch.count > 0)) return 0;
    this.latch ??= { id: nameOf(operation), count: 0, round: 0, ttl, waiters: new Map(), latest: new Map(), answer: new Map() };
    this.latch.count = count;
    this.latch.round++;
    this.latch.ttl = Math.max(this.latch.ttl, ttl);
    this.note(operation, 1);
    return 1;
  }

  countDown(ttl: number, operation: Operation): number {
    const { latch } = this;
    if (!latch) return 0;
    if (this.isRepeat(operation)) return latch.answer.get(operation.line)!;
    if (this.isLate(operation)) return latch.count;
    if (latch.count > 0) {
      latch.count--;
      latch.ttl = Math.max(latch.ttl, ttl);
      this.made.push(`${latch.id} by ${nameOf(operation)}`);
      if (latch.count === 0) this.wakeAll(latch);
    }
    this.note(operation, latch.count);
    return latch.count;
  }

  look(waiter: Waiter | undefined): [count: number, id: string, round: number, ttl: number] | [] {
    const { latch } = this;
    if (!latch) return [];
    if (waiter && latch.count > 0) latch.waiters.set(waiter.owner, waiter);
    return [latch.count, latch.id, latch.round, latch.ttl];
  }

  leave({ owner }: Waiter): number {
    return this.latch?.waiters.delete(owner) ? 1 : 0;
  }

  expire(): void {
    this.latch = undefined;
    this.made = [];
  }

  private wakeAll({ waiters }: Latch): void {
    for (const { inbox, owner } of waiters.values()) if (this.listening.has(inbox)) this.said.push([inbox, owner]);
    waiters.clear();
  }

  private isRepeat({ line, number }: Operation): boolean {
    return this.latch?.latest.get(line) === number;
  }

  private isLate({ line, number }: Operation): boolean {
    return (this.latch?.latest.get(line) ?? 0) > number;
  }

  private note(operation: Operation, answer: number): void {
    this.latch?.latest.set(operation.line, operation.number);
    this.latch?.answer.set(operation.line, answer);
  }
}

const nameOf = ({ line, number }: Operation): string => `${line}:${number}`;
