import { eventually } from './eventually.js';
import { startRedis, type RedisServer } from './redis-server.js';

export interface StartSentinelOptions {
  /** what clients ask for */
  name: string;
  /** started with a port; its replicas are found by asking it */
  master: RedisServer;
  /** how many sentinels must agree that the master is down */
  quorum?: number;
  /** silence of the master after which this sentinel calls it down, milliseconds */
  downAfter?: number;
}

/** One sentinel, which watches one master and knows that it is up. */
export async function startSentinel({ name, master, quorum = 1, downAfter = 1_000 }: StartSentinelOptions): Promise<RedisServer> {
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${master.port} ${quorum}`,
    `sentinel down-after-milliseconds ${name} ${downAfter}`,
    // After twice as long the sentinels vote again, if they could not agree. They see a second later that a replica is promoted.
    `sentinel failover-timeout ${name} ${Math.max(downAfter, 2_000)}`,
  ];
  const sentinel = await startRedis({ port: 'free', config: `${config.join('\n')}\n`, args: ['--sentinel'] });
  try {
    const client = sentinel.client();
    await eventually(async () => /status=ok/.test(await client.info('sentinel')));
    // Since Redis 7. Else a sentinel looks at replicas every ten seconds.
    await client.call('SENTINEL', 'DEBUG', 'INFO-PERIOD', 500).catch(() => undefined);
    client.disconnect();
    return sentinel;
  } catch (error) {
    await sentinel.stop();
    throw error;
  }
}

/** A master, two replicas, and three sentinels that know each other. */
export class SentinelSetup {
  readonly name = 'shop';
  servers: RedisServer[] = [];
  sentinels: RedisServer[] = [];

  /** Until it fails. */
  get master(): RedisServer {
    return this.servers[0]!;
  }

  get addresses(): { host: string; port: number }[] {
    return this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port: port! }));
  }

  async start(): Promise<void> {
    const args = ['--repl-diskless-sync-delay', '0'];
    this.servers = await Promise.all([1, 2, 3].map(() => startRedis({ port: 'free', args })));
    const [master, ...replicas] = this.servers as [RedisServer, ...RedisServer[]];
    await Promise.all(replicas.map(async (replica) => ask(replica, (client) => client.replicaof('127.0.0.1', master.port!))));
    await this.replicated(master);
    const options = { name: this.name, master, quorum: 2, downAfter: 2_000 };
    this.sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(options)));
    await this.settled();
  }

  /** The sentinels know each other and the replicas. */
  private async settled(): Promise<void> {
    const isKnown = async (sentinel: RedisServer): Promise<boolean> =>
      /status=ok,address=[^,]+,slaves=2,sentinels=3/.test(await ask(sentinel, (client) => client.info('sentinel')));
    const areKnown = async (): Promise<boolean> => (await Promise.all(this.sentinels.map(isKnown))).every(Boolean);
    await eventually(areKnown, { every: 50 });
  }

  /** Both replicas have all that the master has. */
  async synced(): Promise<void> {
    const acks = await ask(this.master, async (client) => {
      await client.set('synced', 1);
      return client.wait(2, 10_000);
    });
    if (acks !== 2) throw new Error(`${acks} of 2 replicas are in sync`);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  private async replicated(master: RedisServer): Promise<void> {
    const online = async (): Promise<boolean> =>
      (await ask(master, (client) => client.info('replication'))).split('state=online').length === 3;
    await eventually(online, { every: 20 });
  }
}

async function ask<T>(server: RedisServer, question: (client: ReturnType<RedisServer['client']>) => Promise<T>): Promise<T> {
  const client = server.client();
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}
