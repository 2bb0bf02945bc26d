import '../support/virtual-time.js'; // all times are those of the story
import type { Asked, Entry, Fact, LeaseSeen } from './history/entry.js';
import type { Facts } from './oracles/oracle.js';

export const NO_LOSS: Facts = { lossy: false, fenced: [], leftovers: [] };
export const LOSS: Facts = { ...NO_LOSS, lossy: true };

export interface Holding extends Partial<Omit<Asked, 'e' | 'id'>>, Partial<Omit<LeaseSeen, 'key'>> {
  w?: string;
  from: number;
  /** the last moment at which the holder claims its lease; default: 100 ms later */
  to?: number;
  asked?: number;
}

/** A history that is written by hand, in milliseconds from 0. */
export class Story {
  private readonly entries: Entry[] = [];
  private calls = 0;

  get history(): Entry[] {
    return [...this.entries].sort((a, b) => a.t - b.t);
  }

  add(t: number, fact: Fact, w = 'w0.1'): this {
    this.entries.push({ t, w, ...fact });
    return this;
  }

  /** A question; returns the id of the call. */
  ask(t: number, { w = 'w0.1', ...terms }: Partial<Asked> & { w?: string } = {}): string {
    const id = `${w}-${++this.calls}`;
    const question: Asked = {
      e: 'asked',
      id,
      chain: id,
      kind: 'mutex',
      keys: ['a'],
      mode: 'alone',
      patience: null,
      requestTimeout: 1_000,
      keyTimeout: 1_000,
      retryInterval: 100,
      fair: false,
      minHold: 0,
      maxHold: null,
      ...terms,
    };
    this.add(t, question, w);
    return id;
  }

  grant(t: number, id: string, { token = this.calls, owner = id, remaining = 1_000, key = 'a' }: Partial<LeaseSeen> = {}): void {
    this.add(t, { e: 'granted', id, leases: [{ key, token, owner, remaining }] }, id.split('-')[0]);
  }

  /** A whole holding, from its question to its release. */
  hold({ from, to = from + 100, asked = from - 1, w, token, owner, remaining, ...terms }: Holding): string {
    const id = this.ask(asked, { w, ...terms });
    this.grant(from, id, { token, owner, remaining, key: terms.keys?.[0] });
    this.add(to, { e: 'releasing', id }, w);
    this.add(to + 1, { e: 'released', id, ours: true }, w);
    return id;
  }
}
