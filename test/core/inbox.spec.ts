import { mayTake, passTime } from '../support/virtual-time.js';
import { StoreError } from 'nestjs-distributed-lock/core';
import { afterTry, Inbox, type InboxConnection } from '../../lib/core/store/inbox.js';
import { TopicBus } from '../../lib/core/store/topic-bus.js';

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

describe('the pause before the next connection', () => {
  const NONE = { failures: 0, vain: 0, refusals: 0, pause: 0 };
  const after = (...outcomes: Parameters<typeof afterTry>[1][]) => {
    let tries = NONE;
    return outcomes.map((outcome) => (tries = afterTry(tries, outcome)).pause);
  };

  it('grows by 50 ms up to 500 in an outage, and begins anew after a connection that was open', () => {
    expect(after(...Array<'away'>(12).fill('away'))).toEqual([50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 500, 500]);
    expect(after('away', 'away', 'opened', 'away')).toEqual([50, 100, 50, 100]);
  });

  it('is a second from the sixth in vain on, though there was an outage between, and doubles up to a minute', () => {
    expect(after('vain', 'vain', 'away', 'vain', 'vain', 'vain', 'vain', 'vain')).toEqual([50, 100, 150, 200, 250, 300, 1_000, 2_000]);
    expect(after(...Array<'refused'>(8).fill('refused'))).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('is short in an outage after a refusal, and goes on doubling after it', () => {
    expect(after('refused', 'away', 'vain')).toEqual([1_000, 100, 2_000]);
  });
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
    ['too many clients', busy, 'too many clients'],
    ['a missing right', forbidden, 'NOPERM: allow it'],
  ])('that is refused for %s warns once, is tried once a minute in the end, and opens when it may (G8)', async (_, reason, why) => {
    const warnings: string[] = [];
    const inbox = new Refused(reason);
    await inbox.open((message) => warnings.push(message));
    await passTime(HOUR);
    expect(warnings).toEqual([`Some waiters cannot be woken and poll instead: ${why}.`]);
    expect(inbox.tries).toBeLessThan(80);
    inbox.isRefused = false;
    await passTime(60_000);
    expect(inbox.isOpen).toBe(true);
    inbox.close();
  });

  it('whose connection says nothing is interrupted after a request timeout, warns once, and opens when it may (G8)', async () => {
    const warnings: string[] = [];
    const inbox = new Refused(busy);
    inbox.isSilent = true;
    await inbox.open((message) => warnings.push(message));
    expect(inbox.state).toBe('interrupted');
    await passTime(HOUR);
    expect(warnings).toEqual(['Some waiters cannot be woken and poll instead: the connection does not listen within 1000 ms.']);
    expect(inbox.tries).toBeLessThan(80);
    inbox.isSilent = inbox.isRefused = false;
    await passTime(60_000);
    expect(inbox.isOpen).toBe(true);
    inbox.close();
  });

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
  subscribe.mockImplementationOnce(() => {
    throw new Error('The client is closed.');
  });
  await bus.connected(subscribe);
  await bus.listen('ops', () => undefined);
  await bus.listen('revoke', () => undefined);
  expect(subscribe.mock.calls).toEqual([
    ['subscribe', 'ops'],
    ['subscribe', 'revoke'],
  ]);
});
