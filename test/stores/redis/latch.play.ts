import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { LatchModel } from './latch.model.js';
import { rounded, type StepOf } from './lease.play.js';
import { crashes, PROCESSES, repeats, series, type Disturbance } from './model.steps.js';
import type { Caller } from './queue.model.js';
import { playsLikeItsModel, ScriptPlay, type Ear, type Parts } from './script.play.js';
import { latchScripts } from './setting.js';

const KEY = 'latch';
const WAITERS: readonly Caller[] = PROCESSES.flatMap((inbox) => [1, 2].map((number) => ({ inbox, owner: `${inbox}/${number}` })));

type OwnStep =
  | { type: 'trySetCount'; count: number; ttl: number; line: string }
  | { type: 'countDown'; ttl: number; line: string }
  | { type: 'look'; waiter: Caller | undefined }
  | { type: 'leave'; waiter: Caller }
  | { type: 'expire' };

const of = <T extends OwnStep['type']>(type: T) => fc.constant(type);
const ttl = fc.constantFrom(20_000, 60_000);
const line = fc.constantFrom('a', 'b', 'c');
const waiter = fc.constantFrom(...WAITERS);
const steps = series<OwnStep | Disturbance>(
  { weight: 4, arbitrary: fc.record({ type: of('trySetCount'), count: fc.nat(3), ttl, line }) },
  { weight: 8, arbitrary: fc.record({ type: of('countDown'), ttl, line }) },
  { weight: 5, arbitrary: fc.record({ type: of('look'), waiter: fc.option(waiter, { nil: undefined }) }) },
  { weight: 1, arbitrary: fc.record({ type: of('leave'), waiter }) },
  { weight: 1, arbitrary: fc.record({ type: of('expire') }) },
  { weight: 2, arbitrary: crashes },
  { weight: 5, arbitrary: repeats },
);

let changes = 0;

class LatchPlay extends ScriptPlay<LatchModel, OwnStep> {
  /** The most counts that one latch has seen. */
  private made = 0;
  private operations = 0;

  constructor(redis: Redis, ear: Ear) {
    super(redis, ear, new LatchModel());
  }

  override async end(): Promise<void> {
    changes += this.made;
  }

  protected async play(step: OwnStep): Promise<void> {
    if (step.type !== 'expire') return this.send(latchScripts[step.type], this[step.type](step as never));
    if (await this.redis.pexpire(KEY, 1)) while (await this.redis.exists(KEY));
    this.model.expire();
  }

  private trySetCount({ line, ttl, count }: StepOf<OwnStep, 'trySetCount'>): Parts {
    const operation = { line, number: ++this.operations };
    const expected = () => this.model.trySetCount(count, ttl, operation);
    return [[KEY], [ttl, line, operation.number, count], (reply) => expect(reply).toBe(expected())];
  }

  private countDown({ line, ttl }: StepOf<OwnStep, 'countDown'>): Parts {
    const operation = { line, number: ++this.operations };
    return [[KEY], [ttl, line, operation.number], (reply) => expect(reply).toBe(this.model.countDown(ttl, operation))];
  }

  private look({ waiter }: StepOf<OwnStep, 'look'>): Parts {
    return [
      [KEY],
      [waiter?.owner ?? '', waiter?.inbox ?? ''],
      (reply) => {
        const [count, id, round, left] = reply as [string, string, string, number] | [];
        expect(id === undefined ? [] : [Number(count), id, Number(round), rounded(left!)]).toEqual(this.model.look(waiter));
      },
    ];
  }

  private leave({ waiter }: StepOf<OwnStep, 'leave'>): Parts {
    return [[KEY], [waiter.owner], (reply) => expect(reply).toBe(this.model.leave(waiter))];
  }

  /** All who wait are woken, each once, in no order. */
  protected override compareSaid(heard: [string, string][], said: [string, string][]): void {
    expect(heard.map(String).sort()).toEqual(said.map(String).sort());
  }

  protected async compare(): Promise<void> {
    const { latch, made } = this.model;
    this.made = Math.max(this.made, made.length);
    // No operation counts twice on one latch, in whichever of its rounds (G6).
    expect(new Set(made).size).toBe(made.length);
    const fields = await this.redis.hgetall(KEY);
    // Nothing but the latch, which expires with all that belongs to it (G7).
    expect(await this.redis.keys('*')).toEqual(latch ? [KEY] : []);
    if (!latch) return;
    expect(rounded(await this.redis.pttl(KEY))).toBe(latch.ttl);
    const expected = new Map<string, string>([
      ['latch', latch.id],
      ['count', String(latch.count)],
      ['round', String(latch.round)],
      ...[...latch.waiters.values()].map(({ owner, inbox }) => [`waiter:${owner}`, inbox] as const),
      ...[...latch.latest].map(([name, number]) => [`line:${name}`, `${number} ${latch.answer.get(name)}`] as const),
    ]);
    const shown = Object.entries(fields).map(([name, value]) => [name, name.startsWith('line:') ? value.replace(/ \d+$/, '') : value]);
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(expected));
  }
}

export const latchPlay = playsLikeItsModel(
  'the scripts of the count-down latch',
  steps,
  (redis, ear) => new LatchPlay(redis, ear),
  () => expect(changes).toBeGreaterThan(20),
);
