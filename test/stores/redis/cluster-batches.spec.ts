import { Socket } from 'node:net';
import type { RedisServer } from '../../support/redis-server.js';
import { useCluster } from './cluster.setting.js';
import { loadScripts } from './setting.js';

const once = { keyTimeout: 60_000, waitTimeout: 0 };

/** The ports of the servers that scripts are sent to, one entry for each write to a socket. */
function watchWrites(): { ports: (number | undefined)[]; stop: () => void } {
  const ports: (number | undefined)[] = [];
  const isOfScripts = (chunks: unknown): boolean => /evalsha/i.test(String(chunks));
  // A socket passes what is written to one of these: alone, or what has gathered in the meantime.
  const spies = (['_write', '_writev'] as const).map((name) => {
    const write = Socket.prototype[name] as (this: Socket, ...args: unknown[]) => void;
    return jest.spyOn(Socket.prototype, name).mockImplementation(function (this: Socket, ...args: unknown[]) {
      const [data] = args as [unknown];
      const chunks = name === '_writev' ? (data as { chunk: unknown }[]).map(({ chunk }) => String(chunk)).join('') : data;
      if (isOfScripts(chunks)) ports.push(this.remotePort);
      return write.apply(this, args);
    });
  });
  return { ports, stop: () => spies.forEach((spy) => spy.mockRestore()) };
}

describe("what is asked of a Cluster's node in one turn of the event loop", () => {
  const on = useCluster();

  const portsOf = (nodes: readonly RedisServer[]) => nodes.map(({ port }) => port!).sort();

  it.each([
    ['own', () => on.locks()],
    ['lent', () => on.borrowed()],
  ])('goes in one write, whatever slots it is of, and each gets its own answer, with a client that is %s (G1, G2)', async (_, open) => {
    const { masters } = on.cluster;
    const locks = open();
    const [here, there] = [masters[0]!, masters[1]!].map((node) => on.cluster.keysOn(node, 50)) as [string[], string[]];
    const keys = [...here, ...there];
    const taken = new Set(keys.filter((_key, i) => i % 5 === 0));
    for (const node of masters) {
      const redis = node.client();
      await loadScripts(redis);
      for (const key of taken) if (on.cluster.nodeOf(key) === node) await redis.set(key, 'stranger');
      redis.disconnect();
    }
    for (const node of masters) await locks.using(on.cluster.keysOn(node, 1, 'warm-up:')[0]!, () => undefined);

    const writes = watchWrites();
    on.setting.finally(writes.stop);
    const leases = await Promise.all(keys.map((key) => locks.tryAcquire(key, once)));
    expect(writes.ports.splice(0).sort()).toEqual(portsOf(masters.slice(0, 2)));
    expect(leases.map((lease) => lease === null)).toEqual(keys.map((key) => taken.has(key)));
    for (const lease of leases) if (lease) expect(await on.setting.redis.get(lease.key)).toBe(lease.owner);

    const held = leases.filter((lease) => lease !== null);
    expect(await Promise.all(held.map((lease) => lease.release()))).toEqual(held.map(() => true));
    expect(writes.ports.sort()).toEqual(portsOf(masters.slice(0, 2)));
  });
});
