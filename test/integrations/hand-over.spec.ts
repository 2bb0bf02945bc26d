import type { Locks } from 'nestjs-distributed-lock';
import { forkChild } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import { bootQueue } from './bullmq-app.js';
import type { WorkerMessage } from './hand-over.child.js';
import { Orders, Shipping, Shop } from './hand-over-orders.js';
import { way } from './ways.js';

const KEY = 'order-42-locks';

const setting = useRedis();

/** The web app, which adds jobs; with a worker of its own, or not. */
async function bootShop(...providers: object[]) {
  const { locks, get } = await bootQueue(setting.server, [Shop, Orders, ...providers], { name: 'orders' });
  const tokens: number[] = [];
  locks.on('acquired', ({ key, fencingToken }) => void (key === KEY && tokens.push(fencingToken!)));
  return { shop: get(Shop), orders: get(Orders), locks, tokens };
}
const workerThat = (hangsBefore?: 'adopt' | 'ship') =>
  forkChild<WorkerMessage>('test/integrations/hand-over.child.ts', {
    args: [JSON.stringify({ connection: setting.server.connection, hangsBefore })],
  });
const notes = () => setting.redis.lrange('notes', 0, -1);
const isTaken = async (locks: Locks) => (await locks.tryAcquire(KEY)) === null;

way('Queues', 'a lease that goes from a request to a job of BullMQ', () => {
  it('is held from the request to the end of the job, and is free then', async () => {
    const { orders, shop, tokens, locks } = await bootShop(Shipping);
    await orders.submit('42');
    await eventually(() => expect(shop.lines).toHaveLength(2));
    const [placed, shipped] = tokens as [number, number];
    expect(shipped).toBeGreaterThan(placed);
    expect(shop.lines).toEqual(['checked 42', `shipped 42 with ${shipped}`]);
    await eventually(async () => expect(await locks.using(KEY, () => 'free')).toBe('free'));
  });
});

it.each([
  ['before it adopts the lease', 'adopt'],
  ['after it has adopted it', 'ship'],
] as const)(
  'a worker that is killed %s: the job runs again in another one, and the key is free at no time until then',
  async (_when, hangsBefore) => {
    const { orders, tokens, locks } = await bootShop();
    const first = await workerThat(hangsBefore);
    await first.waitFor('ready');
    await orders.submit('42');
    await first.waitFor('hangs');
    expect(await isTaken(locks)).toBe(true);
    const second = await workerThat();
    await second.waitFor('ready');
    expect(await notes()).toEqual([]);
    expect(await isTaken(locks)).toBe(true);
    await first.kill();
    await eventually(async () => expect(await notes()).toHaveLength(1));
    const [, shipped] = /^shipped 42 with (\d+)$/.exec((await notes())[0]!)!;
    expect(Number(shipped)).toBeGreaterThan(tokens[0]!);
    await eventually(async () => expect(await locks.using(KEY, () => 'free')).toBe('free'));
    await second.kill();
  },
);
