import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { LATE, LATE_WITHOUT, PROCESSES, type Disturbance } from './model.steps.js';
import type { Caller, QueueModel } from './queue.model.js';
import { seed } from '../../support/random.js';
import type { Setting } from './setting.js';

const MARK = 'mark';

/** Listens to the inboxes of all processes that are alive. */
export class Ear {
  private messages: [string, string][] = [];
  private marks = 0;

  constructor(
    private readonly subscriber: Redis,
    private readonly redis: Redis,
  ) {
    subscriber.on('message', (channel, owner) => this.messages.push([channel, owner]));
  }

  async turn(inbox: string, on: boolean): Promise<void> {
    await (on ? this.subscriber.subscribe(inbox) : this.subscriber.unsubscribe(inbox));
  }

  async start(): Promise<void> {
    await this.subscriber.subscribe(MARK, ...PROCESSES);
    this.messages = [];
  }

  /** All that was said so far: a mark behind it has arrived. */
  async heard(): Promise<[string, string][]> {
    const mark = String(++this.marks);
    const arrived = new Promise<void>((resolve) => {
      const listener = (channel: string, text: string): void => {
        if (channel !== MARK || text !== mark) return;
        this.subscriber.off('message', listener);
        resolve();
      };
      this.subscriber.on('message', listener);
    });
    await this.redis.publish(MARK, mark);
    await arrived;
    return this.messages.splice(0).filter(([channel]) => channel !== MARK);
  }
}

/** A script call, and what is to be said of its reply. */
export type Parts = [keys: string[], args: (string | number)[], expect: (reply: unknown) => void];

/** One script call, as it was sent: to be sent again. */
interface Sent {
  readonly isOpen: boolean;
  readonly send: () => Promise<unknown>;
  readonly expect: (reply: unknown) => void;
}

type Model = Pick<QueueModel<unknown>, 'listening' | 'said'>;

/** Plays the steps at the server and in the model, and compares after each. */
export abstract class ScriptPlay<M extends Model, Step extends { readonly type: string }> {
  private readonly sent: Sent[] = [];
  /** Whether the late one has its inbox. */
  private isOpen = false;

  constructor(
    protected readonly redis: Redis,
    private readonly ear: Ear,
    readonly model: M,
  ) {
    for (const inbox of PROCESSES) model.listening.add(inbox);
  }

  async step(step: Step | Disturbance): Promise<void> {
    if (isDisturbance(step)) await this.disturb(step);
    else await this.play(step);
    this.compareSaid(await this.ear.heard(), this.model.said);
    this.model.said = [];
    await this.compare();
  }

  /** After the last step. */
  async end(): Promise<void> {}

  protected compareSaid(heard: [string, string][], said: [string, string][]): void {
    expect(heard.map(([inbox, message]) => [inbox, understood(message)])).toEqual(said);
  }

  protected abstract play(step: Step): Promise<void>;
  protected abstract compare(): Promise<void>;

  protected async send(script: string, [keys, args, expect]: Parts): Promise<void> {
    const call = { expect, isOpen: this.isOpen, send: () => this.redis.eval(script, keys.length, ...keys, ...args) };
    this.sent.push(call);
    await this.call(call);
  }

  protected present(caller: Caller): Caller {
    return caller === LATE && !this.isOpen ? LATE_WITHOUT : caller;
  }

  private async disturb(step: Disturbance): Promise<void> {
    if (step.type === 'open') this.isOpen = true;
    else if (step.type === 'repeat') {
      const earlier = this.sent.at(-1 - step.ago);
      // What was sent without the inbox comes before what is sent with it: by one connection.
      if (earlier && earlier.isOpen === this.isOpen) await this.call(earlier);
    } else {
      await this.ear.turn(step.inbox, step.type === 'reconnect');
      if (step.type === 'crash') this.model.listening.delete(step.inbox);
      else this.model.listening.add(step.inbox);
    }
  }

  private async call({ send, expect }: Sent): Promise<void> {
    expect(await send());
  }
}

/** What a message says, as the models say it. */
function understood(message: string): string {
  const [owner, key, ms] = message.split('\n');
  return ms === undefined ? `${key} is offered to ${owner}` : `${key} may be free for ${owner} in ${ms} ms`;
}

function isDisturbance(step: { readonly type: string }): step is Disturbance {
  return ['open', 'crash', 'reconnect', 'repeat'].includes(step.type);
}

/** For what runs at night, with many runs. */
const ALL_NIGHT = 3_600_000;

/** Plays many random series of steps; `end` is what is to be said of all of them. */
export function playsLikeItsModel<Step extends { readonly type: string }>(
  what: string,
  steps: fc.Arbitrary<(Step | Disturbance)[]>,
  start: (redis: Redis, ear: Ear) => ScriptPlay<Model, Step>,
  end?: () => void,
): (setting: Setting, numRuns: number) => void {
  return (setting, numRuns) =>
    it(
      `${what}, in any order do as the model does (G2, G5, G6, G7, G8)`,
      async () => {
        const redis = setting.client({ enableAutoPipelining: true });
        const ear = new Ear(setting.client(), redis);
        const property = fc.asyncProperty(steps, async (all) => {
          await redis.flushall();
          await ear.start();
          const play = start(redis, ear);
          for (const step of all) await play.step(step);
          await play.end();
        });
        await fc.assert(property, { numRuns, seed });
        end?.();
      },
      ALL_NIGHT,
    );
}
