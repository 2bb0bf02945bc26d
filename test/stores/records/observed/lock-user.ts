import { StoreError } from '../../../../lib/core/model/errors.js';
import type { AcquireReply, LeaseDriver, Share } from '../../../../lib/core/store/lease-driver.js';
import { validity } from '../../../../lib/core/util/clock.js';
import { ALL } from '../../../../lib/stores/records/record.work.js';
import { Tenure, type Sent } from './promises.js';
import type { Member, World } from './world.js';

/** Milliseconds between two looks of who waits, at most. */
export const LOOK_INTERVAL = 150;

interface Kind {
  readonly key: string;
  readonly driver: LeaseDriver;
  readonly share?: Share;
  readonly count: number;
  readonly permits: number;
  readonly isReader?: boolean;
}

/** One that takes locks, again and again. It keeps to its validity, and forgets a lock now and then. */
export class LockUser {
  private owners = 0;
  private readonly kinds: readonly (() => Kind)[];

  constructor(
    private readonly world: World,
    private readonly member: Member,
    private readonly name: string,
  ) {
    const { mutex, semaphore, readWriteLock } = member.store;
    const whole = { count: 1, permits: 1 } as const;
    const document = { key: 'document', permits: ALL } as const;
    this.kinds = [
      () => ({ key: 'mutex', driver: mutex, ...whole }),
      () => {
        const count = this.world.time.pick(1, 1, 2);
        return { key: 'semaphore', driver: semaphore!, share: { count, permits: 2, rank: 0 }, count, permits: 2 };
      },
      () => ({ ...document, driver: readWriteLock!.read, share: { count: 1, permits: Infinity, rank: 0 }, count: 1, isReader: true }),
      () => ({ ...document, driver: readWriteLock!.write, share: { count: Infinity, permits: Infinity, rank: 0 }, count: ALL }),
    ];
  }

  async run(): Promise<void> {
    const { time } = this.world;
    for (;;) {
      await this.world.rest(time.random() * time.pick(20, 50, 50, 2000));
      const kind = time.pick(...this.kinds)();
      for (let yields: Tenure | undefined, isFirst = true; isFirst || yields; isFirst = false) {
        const tenure = await this.take(kind, yields);
        yields = tenure && (await this.use(kind, tenure));
      }
    }
  }

  /** @param yields what it holds now, and gives up for it. */
  private async take({ key, driver, share, count, permits, isReader = false }: Kind, yields?: Tenure): Promise<Tenure | undefined> {
    const { world, member } = this;
    const { time } = world;
    const owner = `app@${this.name}:${++this.owners}`;
    const ttl = time.pick(100, 300, 1000, 2000);
    const queue = time.random() < 0.7;
    const tenure = new Tenure(member.process, key, owner, count);
    const patience = member.process.now + time.pick(50, 3000, 10_000);
    const waitsSince = time.now;
    let wake = (): void => undefined;
    const forget = member.store.mutex.wakeUps?.listen(owner, (askIn = 0) => void time.in(askIn, member.process, () => wake()));
    try {
      while (member.process.now < patience) {
        const woken = new Promise<void>((resolve) => (wake = resolve));
        const sent = world.sent(member, key);
        tenure.asked(sent, ttl);
        const request = { key, owner, ttl, tokens: 1, queue, ...(share && { share }), ...(yields && { yields: yields.owner }) };
        const reply = await this.ask(() => driver.acquire(request));
        if (reply?.granted && member.process.now < sent.local + validity(ttl)) {
          tenure.confirm(sent, ttl);
          world.taken(tenure, reply.token!, sent.token, permits, isReader, queue ? waitsSince : Infinity);
          return tenure;
        }
        await Promise.race([woken, pause(pauseAfter(reply) ?? LOOK_INTERVAL * (0.4 + 0.6 * time.random()))]);
      }
    } finally {
      forget?.();
    }
    await this.surely(() => driver.leave({ key, owner }));
    return undefined;
  }

  /** What it gives up for the next one, if it does so. */
  private async use(kind: Kind, tenure: Tenure): Promise<Tenure | undefined> {
    const { world, member } = this;
    const { time } = world;
    const { process } = member;
    const { key, driver } = kind;
    const { owner } = tenure;
    const until = process.now + time.random() * time.pick(5, 50, 1500, 4000);
    const renewsEvery = time.pick(tenure.ttl / 3, tenure.ttl / 3, Infinity);
    for (let isLost = false; !isLost && process.now < Math.min(until, tenure.validUntil);) {
      await pause(Math.min(renewsEvery, until - process.now, tenure.validUntil - process.now));
      if (process.now >= Math.min(until, tenure.validUntil)) break;
      const ttl = time.pick(tenure.ttl, tenure.ttl, 300);
      const sent = world.sent(member, key);
      tenure.asked(sent, ttl);
      isLost =
        key === 'mutex' && time.random() < 0.2 ? await this.extend(kind, tenure, sent, ttl) : await this.renew(kind, tenure, sent, ttl);
    }
    const fate = time.random();
    // It dies, or forgets what it has.
    if (fate < 0.03) return world.kill(member);
    if (fate < 0.15) return pause(tenure.validUntil - process.now).then(() => undefined);
    const isValid = process.now < tenure.validUntil;
    tenure.isOver = true;
    if (fate < 0.3) return tenure;
    const keepFor = fate < 0.45 ? time.pick(50, 500) : 0;
    const { sentAt } = world.sent(member, key);
    const reply = await this.ask(() => driver.release({ key, owner, keepFor }));
    if (keepFor > 0 && reply === 'released' && isValid) world.kept(tenure, sentAt, keepFor);
    if (reply === undefined) await this.surely(() => driver.release({ key, owner, keepFor }));
    return undefined;
  }

  private async renew({ key, driver }: Kind, tenure: Tenure, sent: Sent, ttl: number): Promise<boolean> {
    const reply = await this.ask(() => driver.renew([{ key, owner: tenure.owner, ttl }])[0]!);
    if (reply === 'renewed' && this.member.process.now < tenure.validUntil) this.world.renewed(tenure, sent, ttl);
    return reply === 'lost';
  }

  private async extend({ key, driver }: Kind, tenure: Tenure, sent: Sent, ttl: number): Promise<boolean> {
    const reply = await this.ask(() => driver.extend!({ key, owner: tenure.owner, ttl, tokens: 2 }));
    if (reply !== undefined && reply !== 'lost' && this.member.process.now < tenure.validUntil) {
      this.world.renewed(tenure, sent, ttl);
      if (reply !== 'wanted') this.world.extended(tenure, reply.token!);
    }
    return reply === 'lost';
  }

  /** `undefined`: the outcome is unknown. */
  private async ask<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof StoreError && error.transient)) this.world.promises.fail(String((error as Error).stack));
      return undefined;
    }
  }

  private async surely(request: () => Promise<unknown>): Promise<void> {
    for (let tries = 0; tries < 8 && (await this.ask(() => request().then(() => true))) === undefined; tries++) await pause(30);
  }
}

/** When the holder's lease may be over. */
function pauseAfter(reply: AcquireReply | undefined): number | undefined {
  if (!reply || reply.granted || reply.remaining < 0 || reply.remaining > LOOK_INTERVAL) return undefined;
  return reply.remaining + 1;
}

/** On the clock of the process. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, Math.max(0, milliseconds)));
}
