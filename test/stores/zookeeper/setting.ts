import { Locks } from 'nestjs-distributed-lock/core';
import { zookeeperStore, type ZookeeperStoreOptions } from 'nestjs-distributed-lock/zookeeper';
import zookeeper, { type Client } from 'node-zookeeper-client';

const opened: Locks[] = [];
const clients: Client[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  for (const client of clients.splice(0)) client.close();
});

/** Locks that are closed when the test ends. */
export function open(options: ZookeeperStoreOptions | string): Locks {
  const store = zookeeperStore(typeof options === 'string' ? { connectionString: options } : options);
  const locks = new Locks(store, { logger: false, defaults: { keyTimeout: 5000, waitTimeout: 60_000 } });
  opened.push(locks);
  return locks;
}

/** A client that is connected, and closed when the test ends. */
export async function connected(connectionString: string): Promise<Client> {
  const client = zookeeper.createClient(connectionString, { spinDelay: 50 });
  clients.push(client);
  await new Promise<void>((resolve) => {
    client.once('connected', resolve);
    client.connect();
  });
  return client;
}

/** The result of a method that calls back. */
export function asked<T = void>(
  call: (done: (error: Error | zookeeper.Exception | null | undefined, result: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => call((error, result) => (error ? reject(new Error(String(error))) : resolve(result))));
}
