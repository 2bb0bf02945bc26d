import { mayTake, passTime } from '../support/virtual-time.js';
import { StoreError } from 'nestjs-distributed-lock/core';
import { afterTry, Inbox, type InboxConnection } from '../../lib/core/store/inbox.js';
import { TopicBus } from '../../lib/core/store/topic-bus.js';
import { throwing } from '../support/rejection.js';

const HOUR = 3_600_000;
mayTake(3 * HOUR);

/** Whose store answers, or does not, and refuses its connection for this reason. */
class Refused extends Inbox {
  tries = 0;
  isRefused = true;
  isAway = false;
  isSilent = false;

  constructor(private readonly reason: StoreError) {
    super('Some', 1000, 'allow it');
  }

  protected connect(): InboxConnection {
    this.tries++;
    let close = (): void => undefined;
    const ended = new Promise<void>((resolve) => (close = resolve));
    const silence = new Promise<void>(() => undefined);
    const listening = this.isSilent ? silence : this.isRefused ? Promise.reject(this.reason) : Promise.resolve();
    return { listening, ended, close };
  }

  protected read(): boolean {
    return false;
  }

  protected async echo(owner: string): Promise<boolean> {
    if (this.isAway) throw new StoreError('away', { transient: true });
    this.wake(owner);
    return true;
  }
}

const busy = new StoreError('too many clients', { transient: true });
const forbidden = new StoreError('NOPERM', { transient: false });

it.each<[string, Parameters<typeof afterTry>[1][], number[]]>([
  ['grows in an outage', Array<'away'>(11).fill('away'), [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 500]],
  ['is short again after a connection that was open', ['away', 'away', 'opened', 'away'], [50, 100, 50, 100]],
  [
    'is a second from the sixth on that is useless',
    ['vain', 'vain', 'away', 'vain', 'vain', 'vain', 'vain'],
    [50, 100, 150, 200, 250, 300, 1_000],
  ],
  ['doubles up to a minute after a refusal', Array<'refused'>(8).fill('refused'), [1, 2, 4, 8, 16, 32, 60, 60].map((s) => 1_000 * s)],
  ['is short in an outage between two refusals', ['refused', 'away', 'vain'], [1_000, 100, 2_000]],
])('the pause before the next connection of an inbox %s', (_, outcomes, pauses) => {
  let tries = { failures: 0, vain: 0, refusals: 0, pause: 0 };
  expect(outcomes.map((outcome) => (tries = afterTry(tries, outcome)).pause)).toEqual(pauses);
});

describe('an inbox', () => {
  it('that was closed while it was open is not interrupted: nobody waits', async () => {
    const inbox = new Refused(busy);
    inbox.isRefused = false;
    await inbox.open(() => undefined);
    expect(inbox.isOpen).toBe(true);
    inbox.close();
    await passTime(1000);
    expect(inbox.state).toBe('woken');
  });

  it.each([
    ['is refused for too many clients', busy, 'too many clients'],
    ['is refused for a missing right', forbidden, 'NOPERM: allow it'],
    ['says nothing', undefined, 'the connection does not listen within 1000 ms'],
  ])(
    'whose connection %s is interrupted, warns once, is tried once a minute in the end, and opens when it may (G8)',
    async (_, reason, why) => {
      const warnings: string[] = [];
      const inbox = new Refused(reason ?? busy);
      inbox.isSilent = !reason;
      await inbox.open((message) => warnings.push(message));
      expect(inbox.state).toBe('interrupted');
      await passTime(HOUR);
      expect(warnings).toEqual([`Some waiters cannot be woken and poll instead: ${why}.`]);
      expect(inbox.tries).toBeLessThan(80);
      inbox.isSilent = inbox.isRefused = false;
      await passTime(60_000);
      expect(inbox.isOpen).toBe(true);
      inbox.close();
    },
  );

  it('whose store is away opens within a second of its return, without a warning (G8)', async () => {
    const warnings: string[] = [];
    const inbox = new Refused(busy);
    inbox.isAway = true;
    await inbox.open((message) => warnings.push(message));
    await passTime(HOUR);
    inbox.isAway = inbox.isRefused = false;
    await passTime(1_000);
    expect(inbox.isOpen).toBe(true);
    expect(warnings).toEqual([]);
    inbox.close();
  });
});

it('a bus whose client throws once goes on with the next topic', async () => {
  const options = { connection: 'inbox', open: () => Promise.resolve(true), publish: () => Promise.resolve(0) };
  const bus = new TopicBus({ ...options, requestTimeout: 1_000 });
  const subscribe = jest.fn(() => Promise.resolve());
  subscribe.mockImplementationOnce(throwing(new Error('The client is closed.')));
  await bus.connected(subscribe);
  await bus.listen('ops', () => undefined);
  await bus.listen('revoke', () => undefined);
  expect(subscribe.mock.calls).toEqual([
    ['subscribe', 'ops'],
    ['subscribe', 'revoke'],
  ]);
});
