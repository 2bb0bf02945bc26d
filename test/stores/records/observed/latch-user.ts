import type { LatchChange } from '../../../../lib/core/store/latch-driver.js';
import { pause } from './lock-user.js';
import type { Member, World } from './world.js';

const TTL = 60_000;

/** One round of a latch: who counts down, and what is known of it. */
export class LatchRound {
  begun = 0;
  done = 0;

  constructor(
    readonly key: string,
    readonly count: number,
  ) {}
}

/** One in each process that sets a latch, counts it down and looks at it. It asks until it has an answer. */
export class LatchUser {
  private number = 0;

  constructor(
    private readonly world: World,
    private readonly member: Member,
  ) {}

  async run(): Promise<void> {
    const { world } = this;
    const { time } = world;
    for (;;) {
      await world.rest(time.random() * time.pick(100, 1000));
      const { round } = world;
      if (!round) await this.begin();
      else if (round.begun < round.count && time.random() < 0.7) await this.countDown(round);
      else await this.look(round);
    }
  }

  private async begin(): Promise<void> {
    const { world } = this;
    const round = new LatchRound(world.latch, world.time.pick(1, 3, 6));
    world.round = round;
    // Nobody may count down before it is set.
    round.begun = Infinity;
    const change = this.change(round);
    const isSet = await this.surely(() => this.member.store.countDownLatch!.trySetCount({ ...change, count: round.count }));
    if (!isSet) this.fail(round, 'a latch that is counted down could not be set');
    round.begun = 0;
  }

  private async countDown(round: LatchRound): Promise<void> {
    const { done } = round;
    round.begun++;
    const change = this.change(round);
    const left = await this.surely(() => this.member.store.countDownLatch!.countDown(change));
    if (left < round.count - round.begun || left >= round.count - done) this.fail(round, `counted down to ${left}`);
    round.done++;
    this.world.countedDown++;
    if (round.done < round.count) return;
    await this.look(round);
    if (this.world.round === round) this.world.round = undefined;
  }

  private async look(round: LatchRound): Promise<void> {
    const { count, done } = round;
    const owner = `app@${this.member.process.name}:latch`;
    const state = await this.surely(() => this.member.store.countDownLatch!.look({ key: round.key, owner, queue: true }));
    // It may be another round by now, or not be set yet.
    if (this.world.round !== round || round.begun === Infinity || done === 0) return;
    const left = state?.count ?? -1;
    if (left < count - round.begun || left > count - done) this.fail(round, `has the count ${left}`);
  }

  private change({ key }: LatchRound): LatchChange {
    return { key, ttl: TTL, operation: { line: this.member.process.name, number: ++this.number } };
  }

  private async surely<T>(request: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await request();
      } catch {
        await pause(30);
      }
    }
  }

  private fail({ key, count, begun, done }: LatchRound, what: string): void {
    this.world.promises.fail(`${key}: ${what}, of ${count}, of which ${begun} were begun and ${done} done`);
  }
}
