// Three members, of which some are killed, stopped, or behind the others.

import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from 'node-zookeeper-client';
import { versionsFinding } from '../../../lib/stores/zookeeper/operate/zookeeper.doctor.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { AS_IT_COMES } from '../../support/tcp-proxy-framing.js';
import { startZookeeperCluster, type ZookeeperServer } from '../../support/zookeeper-server.js';
import { threeMembers } from '../three-members.js';
import { asked, connected, open } from './setting.js';

threeMembers({
  start: startZookeeperCluster,
  store: (members, options) =>
    zookeeperStore({ connectionString: members.map(({ connectionString }) => connectionString).join(), ...options }),
  // Some versions lose confirmed writes.
  notOk: async ([member]) => (versionsFinding([await member!.version()]).state === 'warn' ? ['version warn'] : []),
});

describe('a member that gets each write late, and answers reads meanwhile', () => {
  const LATE = 400;
  let members: ZookeeperServer[];
  let [leader, behind]: ZookeeperServer[] = [];
  let way: TcpProxy;
  beforeAll(async () => {
    members = await startZookeeperCluster();
    const leads = await Promise.all(members.map((member) => member.leads()));
    [leader, behind] = [members[leads.indexOf(true)]!, members[leads.indexOf(false)]!];
    const file = join(behind.folder, 'zoo.cfg');
    const config = readFileSync(file, 'utf8');
    const [, port] = new RegExp(`^server\\.${members.indexOf(leader) + 1}=127\\.0\\.0\\.1:(\\d+)`, 'm').exec(config)!;
    way = await startProxy({ port: Number(port) }, Math.random, AS_IT_COMES);
    writeFileSync(file, config.replace(`:${port}:`, `:${way.port}:`));
    await behind.restart();
    way.delay(LATE, 0, 'replies');
  });
  afterAll(async () => {
    await Promise.all(members.map((member) => member.stop()));
    await way.close();
  });

  it('answers a plain client with an old row', async () => {
    const [writer, reader] = [await connected(leader!.connectionString), await connected(behind!.connectionString)];
    const path = await asked<string>((done) => writer.create('/plain', done));
    const exists = (client: Client): Promise<unknown> => asked((done) => client.exists(path, done));
    expect(await exists(writer)).not.toBeNull();
    expect(await exists(reader)).toBeNull();
  });

  it('shows a process that connects to it all that was written before', async () => {
    const lease = await open(leader!.connectionString).acquire('before');
    expect((await open({ connectionString: behind!.connectionString, requestTimeout: 10_000 }).inspect('before')).holders).toHaveLength(1);
    await lease.release();
  });

  it('shows what was written before the question', async () => {
    const near = open(leader!.connectionString);
    const far = open({ connectionString: behind!.connectionString, requestTimeout: 10_000 });
    const latches = [near, far].map((locks) => locks.countDownLatch('batch', { timeToLive: 60_000 }));
    expect(await latches[1]!.getCount()).toBe(0);
    await latches[0]!.trySetCount(2);
    expect(await latches[1]!.getCount()).toBe(2);
    const lease = await near.acquire('order:1');
    const listed: string[] = [];
    for await (const { key } of far.list()) listed.push(key);
    expect(listed).toContain('order:1');
    await lease.release();
  });

  it('grants a key once, and again as soon as it is released', async () => {
    const near = open(leader!.connectionString);
    const far = open({ connectionString: behind!.connectionString, requestTimeout: 10_000 });
    for (let round = 0; round < 5; round++) {
      const lease = await near.acquire('order:42');
      expect(await far.tryAcquire('order:42')).toBeNull();
      const waiting = far.acquire('order:42');
      expect(await lease.release()).toBe(true);
      const next = await waiting;
      expect(await near.tryAcquire('order:42')).toBeNull();
      expect(await next.release()).toBe(true);
    }
  });
});
