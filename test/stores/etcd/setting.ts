import { Locks } from 'nestjs-distributed-lock/core';
import { etcdStore, type EtcdStoreOptions } from 'nestjs-distributed-lock/etcd';

/** Longer than any test: what ends does not end by it. */
export const TIMEOUT = 600_000;

const opened: Locks[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

/** Locks that are closed when the test ends. */
export function open(options: EtcdStoreOptions): Locks {
  const locks = new Locks(etcdStore(options), { logger: false, defaults: { keyTimeout: 5000, waitTimeout: 20_000 } });
  opened.push(locks);
  return locks;
}

/** Asks etcd itself. */
export async function ask<Reply = Record<string, unknown>>(url: string, path: string, body: object, token?: string): Promise<Reply> {
  const headers = new Headers(token === undefined ? {} : { authorization: token });
  const reply = await fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers });
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return JSON.parse(text) as Reply;
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
