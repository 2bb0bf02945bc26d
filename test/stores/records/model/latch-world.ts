import type { LatchRecord } from '../../../../lib/stores/records/record.work.js';
import { Actor, KEY, StepWorld, TTL, type Misfortune } from './step-world.js';

/**
 * What an actor asks for, one letter each: S: set the count; D: count down; W: look, and wait; L: leave. An operation without an answer is asked
 * again, as the same one.
 */
export interface LatchScenario extends Misfortune {
  readonly count: number;
  readonly actors: readonly { readonly process: number; readonly script: string }[];
}

class Party extends Actor {
  isOver = false;
  /** It was told that the latch is not counted down yet. */
  isWaiting = false;
  /** Changes that were answered. */
  readonly counts: number[] = [];
  sets = 0;
  /** A change that may be made, or be made yet, without an answer. */
  isUnsure = false;
}

/** Processes that set one latch, count it down and wait for it. */
export class LatchWorld extends StepWorld<Party> {
  constructor(private readonly scenario: LatchScenario) {
    super(scenario);
    for (const { process, script } of scenario.actors) {
      this.actors.push(new Party(`o${this.actors.length}`, this.processAt(process), script));
    }
  }

  /** As many are left as were not counted. */
  async end(): Promise<void> {
    const left = (this.record as LatchRecord | undefined)?.count ?? 0;
    const isSet = this.actors.some(({ sets }) => sets > 0);
    const counted = this.actors.flatMap(({ counts }) => counts).filter((count) => count > 0).length;
    const unsure = this.actors.filter(({ isUnsure }) => isUnsure).length;
    const most = this.scenario.count - counted;
    // The last one is told 0, as those are that find no latch.
    if (isSet && left !== 0 && (left > most || left < most - unsure)) throw new Error(`${left} are left, not ${most} less ${unsure}`);
    const isNew = await this.later(({ drivers }) =>
      drivers.countDownLatch.trySetCount({ key: KEY, ttl: TTL, count: 1, operation: { line: 'stranger', number: 1 } }),
    );
    if (!isNew) throw new Error('the latch is there at the end');
  }

  check(): void {
    const answers = this.actors.flatMap(({ counts }) => counts).filter((count) => count > 0);
    if (new Set(answers).size < answers.length) throw new Error(`two have counted to the same number: ${answers.join()}`);
    if (this.actors.reduce((sum, { sets }) => sum + sets, 0) > 1 && this.scenario.count > this.downs) throw new Error('it was set twice');
    const latch = this.record as LatchRecord | undefined;
    if (!latch) return;
    const { waiters, count } = latch;
    const mayBeTold = this.processes.some(({ steps, hasFailed, isAlive }) => hasFailed || !isAlive || steps.exchanges.length > 0);
    for (const { id, isOver, isWaiting, isWoken, isAsking } of this.actors) {
      if (isOver && id in waiters) throw new Error(`${id} has ended, and waits`);
      if (isWaiting && count === 0 && !isWoken && !isAsking && !mayBeTold) throw new Error(`${id} waits, and is not told`);
    }
  }

  private get downs(): number {
    return this.scenario.actors.reduce((sum, { script }) => sum + script.split('D').length - 1, 0);
  }

  protected nextStep({ script, done }: Party): string | undefined {
    return script[done];
  }

  protected ask(actor: Party, step: string): void {
    const { countDownLatch } = actor.process.drivers;
    const tenancy = { key: KEY, owner: actor.id };
    const change = { key: KEY, ttl: TTL, operation: { line: actor.id, number: actor.done + 1 } };
    const settled = <T>(request: Promise<T>, answered: (reply: T) => void): void => {
      const next = (reply: T): void => {
        actor.done++;
        actor.isUnsure = false;
        answered(reply);
      };
      this.settled(actor, request, next, () => undefined);
    };
    if (step === 'W') {
      return settled(countDownLatch.look({ ...tenancy, queue: true }), (state) => {
        actor.isWaiting = state !== undefined && state.count > 0;
      });
    }
    if (step === 'L') {
      actor.isWaiting = false;
      return settled(countDownLatch.leave(tenancy), () => {
        actor.isOver = true;
      });
    }
    actor.isUnsure = true;
    if (step === 'S') {
      return settled(countDownLatch.trySetCount({ ...change, count: this.scenario.count }), (isSet) => {
        actor.sets += Number(isSet);
      });
    }
    settled(countDownLatch.countDown(change), (count) => {
      actor.counts.push(count);
    });
  }
}
