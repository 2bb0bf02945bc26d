import type { NodeRedisClient } from 'nestjs-distributed-lock/redis';
import net, { type Socket } from 'node:net';
import * as five from 'redis';
import * as six from 'redis-v6';
import { adapterOf } from '../../../../lib/stores/redis/node-redis/node-redis.adapter.js';
import { eventually } from '../../../support/eventually.js';
import { rejection } from '../../../../lib/testing/store/rejection.js';
import { loadScripts, outcomeOf, useRedis } from '../setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const setting = useRedis();

/** node-redis writes what it is asked for at the end of the turn of the event loop. */
const written = () => new Promise((resolve) => setImmediate(resolve));

/** A connected client, and the socket that it has now. */
async function clientAndSocket(createClient: typeof five.createClient, options: object = {}) {
  const sockets: Socket[] = [];
  const connect = jest.spyOn(net, 'createConnection');
  const client = createClient({ socket: { path: setting.server.path!, tls: false, reconnectStrategy: 100 }, ...options });
  client.on('error', () => undefined);
  setting.finally(() => {
    connect.mockRestore();
    if (client.isOpen) client.destroy();
  });
  await client.connect();
  for (const { value } of connect.mock.results) sockets.push(value as Socket);
  return { client: client as NodeRedisClient & typeof client, socket: sockets.at(-1)! };
}

// A handshake of no commands: version 5 then gives the first reply to what was asked for before.
const silent = { disableClientInfo: true, RESP: undefined };

describe.each([
  ['5', five.createClient],
  ['6', six.createClient as unknown as typeof five.createClient],
])('a connection of node-redis %s that breaks', (version, createClient) => {
  it('before a request is written: it is not sent to the next connection, and gets no reply of another one (G2, G6)', async () => {
    await loadScripts(setting.redis);
    const { client, socket } = await clientAndSocket(createClient, silent);
    const locks = setting.locks({ client }, { defaults: { retryInterval: 20_000 } });
    await locks.using('warm-up', () => undefined, patient);
    await setting.redis.flushall();
    const driver = locks.store.mutex;
    const ask = (key: string) => driver.acquire({ key, owner: `${key}@test`, ttl: 60_000 } as never);
    const lost = rejection(ask('lost'));
    await Promise.resolve(); // the request goes with all of this turn, at its end
    process.nextTick(() => socket.destroy(new Error('reset')));
    expect(await lost).toMatchObject({ name: 'StoreError', transient: true });
    await eventually(() => client.isReady);
    await locks.using(KEY, () => undefined, patient);
    await written();
    expect(await setting.redis.get('lost')).toBeNull();
  });

  it('before a request of the app is written: its reply, and those that are not ours, grant nothing (G1, G2)', async () => {
    const { client, socket } = await clientAndSocket(createClient, silent);
    const locks = setting.locks({ client, requestTimeout: 2_000 });
    await locks.using('warm-up', () => undefined, patient);
    const holder = await setting.locks({ options: setting.server.connection }).acquire(KEY, patient);
    // The reply to the app is what an acquire is granted by: a number.
    await setting.redis.set('number', 7);
    client.get('number').catch(() => undefined);
    socket.destroy(new Error('reset'));
    await eventually(() => client.isReady);
    const body = jest.fn();
    let isOver = false;
    const call = outcomeOf(locks.using(KEY, body, { waitTimeout: 0 })).finally(() => (isOver = true));
    // Each request gets the reply to the next one.
    while (!isOver) {
      client.strLen('number').catch(() => undefined);
      await written();
    }
    const { error } = await call;
    expect(body).not.toHaveBeenCalled();
    expect(error).toMatchObject({ name: version === '5' ? 'StoreError' : 'LockTimeoutError' });
    if (version === '5') {
      // The next break puts it right.
      const again = outcomeOf(locks.acquire('next', { ...patient, keyTimeout: 60_000 }));
      await setting.redis.client('KILL', 'TYPE', 'NORMAL' as never);
      expect((await again).value?.key).toBe('next');
    }
    await holder.release();
  });

  it('emits close once if it was ready, also a duplicate that we break off', async () => {
    const proxy = await setting.proxy();
    const { client } = await clientAndSocket(createClient, { socket: { ...proxy.connection, reconnectStrategy: false } });
    const adapter = adapterOf(client);
    const duplicate = adapter.duplicate();
    const breakOff = () => duplicate.disconnect(true);
    const disconnect = () => duplicate.disconnect();
    const destroy = () => void client.destroy();
    const cut = () => proxy.cut();
    for (const [connection, end] of [
      ...([cut, breakOff, cut, breakOff, breakOff, disconnect] as const).map((one) => [duplicate, one] as const),
      ...([destroy, cut] as const).map((one) => [adapter, one] as const),
    ]) {
      if (connection.status !== 'ready') await connection.connect();
      const closed = jest.fn();
      connection.on('close', closed);
      end();
      await eventually(() => connection.status === 'end');
      await written();
      expect(closed).toHaveBeenCalledTimes(1);
      connection.off('close', closed);
    }
  });
});
