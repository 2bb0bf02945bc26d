import { eventually } from '../../../support/eventually.js';
import type { RedisServer } from '../../../support/redis-server.js';

/** Makes one server the replica of the other, and waits until it has all data. */
export async function follow(replica: RedisServer, master: RedisServer): Promise<void> {
  const client = replica.client();
  await client.replicaof('127.0.0.1', master.port!);
  await eventually(async () => /master_link_status:up/.test(await client.info('replication')), { within: 10_000 });
  client.disconnect();
}
