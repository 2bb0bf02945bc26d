import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { scripts } from '../../../lib/stores/redis/lua.scripts.js';
import { LatchModel, type Operation, type Waiter } from './count-down-latch.model.js';
import { Ear } from './model.ear.js';
import { PROCESSES } from './model.steps.js';
import { LONGEST_RUNS, runs } from './script.play.js';
import { useRedis } from './setting.js';

const KEY = 'latch';
const WAITERS: readonly Waiter[] = PROCESSES.flatMap((inbox) => [1, 2].map((number) => ({ inbox, owner: `${inbox}/${number}` })));

type Step =
  | { type: 'set'; count: number; ttl: number; line: string }
  | { type: 'count'; ttl: number; line: string }
  | { type: 'look'; waiter: Waiter | undefined }
  | { type: 'leave'; waiter: Waiter }
  | { type: 'repeat'; ago: number }
  | { type: 'expire' }
  | { type: 'crash'; inbox: string }
  | { type: 'reconnect'; inbox: string };
type Verb = Extract<Step, { type: 'set' | 'count' | 'look' | 'leave' }>;

const of = <T extends Step['type']>(type: T) => fc.constant(type);
const ttl = fc.constantFrom(20_000, 60_000);
const line = fc.constantFrom('a', 'b', 'c');
const waiter = fc.constantFrom(...WAITERS);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: of('set'), count: fc.nat(3), ttl, line }) },
    { weight: 8, arbitrary: fc.record({ type: of('count'), ttl, line }) },
    { weight: 5, arbitrary: fc.record({ type: of('look'), waiter: fc.option(waiter, { nil: undefined }) }) },
    { weight: 1, arbitrary: fc.record({ type: of('leave'), waiter }) },
    { weight: 5, arbitrary: fc.record({ type: of('repeat'), ago: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ type: of('expire') }) },
    { weight: 1, arbitrary: fc.record({ type: of('crash'), inbox: fc.constantFrom(...PROCESSES) }) },
    { weight: 1, arbitrary: fc.record({ type: of('reconnect'), inbox: fc.constantFrom(...PROCESSES) }) },
  ),
  { minLength: 1, maxLength: 50, size: 'max' },
);

/** One script call, as it was sent: to be sent again, by a client that had no answer or by a line that was slow. */
type Call = () => Promise<void>;

/** Plays the steps at the server and in the model, and compares after each. */
class Play {
  readonly model = new LatchModel();
  private readonly sent: Call[] = [];
  /** The most counts that one latch has seen. */
  made = 0;
  private operations = 0;

  constructor(
    private readonly redis: Redis,
    private readonly ear: Ear,
  ) {
    for (const inbox of PROCESSES) this.model.listening.add(inbox);
  }

  async step(step: Step): Promise<void> {
    if (step.type === 'repeat') await this.sent.at(-1 - step.ago)?.();
    else if (step.type === 'crash' || step.type === 'reconnect') await this.turn(step.inbox, step.type === 'reconnect');
    else if (step.type === 'expire') await this.expire();
    else {
      const call = this.callOf(step);
      this.sent.push(call);
      await call();
    }
    await this.compare();
  }

  private callOf(step: Verb): Call {
    if (step.type === 'look') return () => this.look(step.waiter);
    if (step.type === 'leave') return async () => expect(await this.run('leave', step.waiter.owner)).toBe(this.model.leave(step.waiter));
    const operation: Operation = { line: step.line, number: ++this.operations };
    const args = [step.ttl, operation.line, operation.number];
    if (step.type === 'count')
      return async () => expect(await this.run('countDown', ...args)).toBe(this.model.countDown(step.ttl, operation));
    const { count, ttl: life } = step;
    return async () => expect(await this.run('trySetCount', ...args, count)).toBe(this.model.trySetCount(count, life, operation));
  }

  private async look(by: Waiter | undefined): Promise<void> {
    const [count, id, round, left] = (await this.run('look', by?.owner ?? '', by?.inbox ?? '')) as [string, string, string, number] | [];
    const reply = id === undefined ? [] : [Number(count), id, Number(round), rounded(left!)];
    expect(reply).toEqual(this.model.look(by));
  }

  private run(verb: keyof typeof scripts.latch, ...args: (string | number)[]): Promise<unknown> {
    return this.redis.eval(scripts.latch[verb], 1, KEY, ...args);
  }

  private async turn(inbox: string, on: boolean): Promise<void> {
    await this.ear.turn(inbox, on);
    if (on) this.model.listening.add(inbox);
    else this.model.listening.delete(inbox);
  }

  private async expire(): Promise<void> {
    if (await this.redis.pexpire(KEY, 1)) while (await this.redis.exists(KEY));
    this.model.expire();
  }

  private async compare(): Promise<void> {
    const { latch, made, said } = this.model;
    this.made = Math.max(this.made, made.length);
    this.model.said = [];
    // All who wait are woken, each once, in no order.
    expect((await this.ear.heard()).map(String).sort()).toEqual(said.map(String).sort());
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

/** A run takes far less than the 20 s between two times to live. */
const rounded = (left: number): number => Math.ceil(left / 20_000) * 20_000;

describe('the scripts of the count-down latch, whatever comes after whatever', () => {
  const setting = useRedis();

  it(
    'do as the model does (G6, G7, G8)',
    async () => {
      const redis = setting.client();
      const ear = new Ear(setting.client(), redis);
      let changes = 0;
      const property = fc.asyncProperty(steps, async (all) => {
        await redis.flushall();
        await ear.start();
        const play = new Play(redis, ear);
        for (const step of all) await play.step(step);
        changes += play.made;
      });
      await fc.assert(property, runs());
      expect(changes).toBeGreaterThan(20);
    },
    LONGEST_RUNS,
  );
});
