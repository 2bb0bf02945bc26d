// Three members, of which some are killed, stopped or restored.
import type { Locks } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { startEtcd, startEtcdCluster } from '../../support/etcd-server.js';
import { staysTrue } from '../../support/eventually.js';
import { threeMembers } from '../three-members.js';
import { open } from './setting.js';

threeMembers({
  start: startEtcdCluster,
  store: (members, options) => etcdStore({ endpoints: members.map(({ url }) => url), ...options }),
  notOk: async () => [],
});

it('a key is not granted twice when the data of before come back: a holder that is alive keeps it', async () => {
  const server = await startEtcd();
  // What stores of one process that have the same id have seen, they have seen together.
  const [holder, other] = [0, 1].map((process) => open({ endpoints: [`${server.url}${' '.repeat(process)}`] })) as [Locks, Locks];
  await (await other.acquire('warm')).release();
  // The server is away for a part of it, twice: a copy of its data and a start take a while on a slow machine.
  const keyTimeout = 9_000;
  const lease = await holder.acquire('order:42', { keyTimeout });
  const copy = `${server.data}.copy`;
  await server.kill();
  execFileSync('cp', ['-a', server.data, copy]);
  await server.restart();
  // Renewed by revisions that will be lost.
  const isKept = (): Promise<void> =>
    staysTrue(async () => {
      expect(await other.tryAcquire('order:42')).toBeNull();
      expect(lease.signal.aborted).toBe(false);
    }, keyTimeout + 3_000);
  await isKept();
  await server.kill();
  rmSync(server.data, { recursive: true });
  execFileSync('cp', ['-a', copy, server.data]);
  await server.restart();
  await isKept();
  expect(await lease.release()).toBe(true);
  await (await other.acquire('order:42')).release();
  await server.stop();
});
