import type { RedisServer } from '../../support/redis-server.js';
import { eventually } from '../../support/eventually.js';
import { startCallers } from './cluster-callers.js';
import { useCluster } from './cluster.setting.js';
import { SLACK } from './setting.js';

/** Milliseconds after which the other nodes call a silent one down. */
const NODE_TIMEOUT = 1_500;
const REQUEST_TIMEOUT = 1_000;
const options = { keyTimeout: 1_000, waitTimeout: 20_000, retryInterval: 200 };

describe('a master of a Cluster', () => {
  const on = useCluster({ masters: 3, replicas: 1, nodeTimeout: NODE_TIMEOUT });
  /** Who is master and replica now, of each third of the slots. */
  const pairs: { master: RedisServer; replica: RedisServer }[] = [];
  beforeAll(() => {
    const { nodes } = on.cluster;
    for (const i of [0, 1, 2]) pairs.push({ master: nodes[i]!, replica: nodes[3 + i]! });
  });

  const roleOf = async (node: RedisServer): Promise<string> => {
    const client = node.client();
    return ((await client.role().finally(() => client.disconnect())) as unknown as [string])[0];
  };

  const ways: Record<string, { fail: (pair: (typeof pairs)[number]) => Promise<void>; back: (old: RedisServer) => Promise<void> }> = {
    'is killed': { fail: ({ master }) => master.kill(), back: (old) => old.restart() },
    hangs: { fail: ({ master }) => master.pause(), back: (old) => old.resume() },
    'is replaced by CLUSTER FAILOVER': {
      fail: async ({ replica }) => {
        const client = replica.client();
        await client.call('CLUSTER', 'FAILOVER');
        client.disconnect();
      },
      back: () => Promise.resolve(),
    },
  };

  it.each(Object.entries(ways))(
    'that %s: its replica serves 4 processes of 25 callers soon after its promotion, and the fenced counter is right (G2, G8, G9)',
    async (_way, { fail, back }) => {
      const pair = pairs[Object.keys(ways).indexOf(_way)]!;
      const index = pairs.indexOf(pair);
      const keys = [0, 1, 2].map((i) => on.cluster.keysOn(on.cluster.masters[i]!, 1)[0]!);
      const callers = await startCallers(on, 4, { keys: [keys[index]!, ...keys], callers: 25, options });
      await eventually(async () => (await callers.served()) > 200, { within: 20_000 });
      const { master, replica } = pair;
      await fail(pair);
      await eventually(async () => (await roleOf(replica)) === 'master', { within: 20_000 });
      const promotedAt = Date.now();
      const before = await callers.servedFor(keys[index]!);
      await eventually(async () => (await callers.servedFor(keys[index]!)) >= before + 100, { within: 20_000 });
      await back(master);
      const tallies = await callers.stop();
      for (const { errors, longest } of tallies) {
        expect(errors).toEqual([]);
        expect(longest).toBeLessThan(options.waitTimeout + REQUEST_TIMEOUT + SLACK);
      }
      const firstAt = Math.min(...tallies.flatMap(({ entries }) => entries[keys[index]!]!.filter((at) => at > promotedAt)));
      // The last holder's lease may have to run out first.
      expect(firstAt - promotedAt).toBeLessThan(options.keyTimeout + 1_000 + SLACK);
      await eventually(async () => (await roleOf(master)) === 'slave', { within: 20_000 });
    },
    60_000,
  );
});
