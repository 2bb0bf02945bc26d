import { eventually } from '../../support/eventually.js';
import { useRedis } from './setting.js';

const KEY = 'order:42';
const setting = useRedis();

it('what is no message of a release, published to an inbox, does nothing', async () => {
  const [holder, locks] = [setting.own(), setting.own()];
  const first = await holder.acquire(KEY, { keyTimeout: 60_000 });
  const waiting = locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 60_000 });
  const [inbox] = await eventually(async () => {
    const inboxes = (await setting.redis.pubsub('CHANNELS', 'nestjs-distributed-lock:inbox:*')) as string[];
    expect(inboxes).toHaveLength(1);
    return inboxes;
  });
  await first.release();
  const second = await waiting;
  // An owner that has waited and is done: an offer to it is answered by a release.
  const { owner } = second;
  await second.release();
  const forged = [
    ...['{x}:fence', '{x}:queue', '', 'a\u0000b', 'x'.repeat(513), '{', '}{', '\ud800'].map((key) => `${owner}\n${key}`),
    ...['NaN', '-1', 'Infinity', '1e400', '', ' '].map((delay) => `${owner}\n${KEY}\n${delay}`),
    ...['', '\n', '\n\n\n', `${owner}\n${KEY}\n1\n1`, 'x'.repeat(1_000_000), `${owner}\n${'x'.repeat(1_000_000)}`],
  ];
  const held = await holder.acquire(KEY, { keyTimeout: 60_000 });
  const next = locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 60_000 });
  await eventually(async () => expect(await setting.redis.zcard(`{${KEY}}:queue`)).toBe(1));
  for (const message of forged) expect(await setting.redis.publish(inbox!, message)).toBe(1);
  // What wakes the waiter comes behind them all.
  expect(await held.release()).toBe(true);
  expect(await (await next).release()).toBe(true);
});

it('a driver rejects a key that Redis cannot have, and does not throw', async () => {
  const { mutex } = setting.own().store;
  let call: Promise<unknown> | undefined;
  expect(() => (call = mutex.release({ key: '{x}:fence', owner: 'owner', keepFor: 0 }))).not.toThrow();
  await expect(call).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
});
