// A check of the server itself, without any lock: what it has confirmed must not be lost when its members are killed.
import type { Client } from 'node-zookeeper-client';
import { versionsFinding } from '../../../lib/stores/zookeeper/operate/zookeeper.doctor.js';
import { eventually } from '../../support/eventually.js';
import { random } from '../../support/random.js';
import { startZookeeperCluster, type ZookeeperServer } from '../../support/zookeeper-server.js';
import { asked, connected } from './setting.js';

const WRITERS = 40;
/** 3.8.0 has lost writes within nine. */
const KILLS = 20;

let members: ZookeeperServer[] = [];
afterEach(() => Promise.all(members.map((member) => member.stop())));

it(`${WRITERS} writers, a member killed now and then: no node goes back behind a version that was confirmed`, async () => {
  members = await startZookeeperCluster();
  // It is known to lose them: the doctor says so.
  if (versionsFinding([await members[0]!.version()]).state === 'warn') return;
  const hosts = members.map(({ connectionString }) => connectionString).join();
  const clients = await Promise.all(Array.from({ length: 4 }, () => connected(hosts)));
  const lost: string[] = [];
  let [isOver, confirmed] = [false, 0];
  const write = async (client: Client, path: string): Promise<void> => {
    await asked<string>((done) => client.create(path, done));
    for (let last = -1; !isOver;) {
      const written = asked<{ version: number }>((done) => client.setData(path, Buffer.alloc(200, path), done));
      // Not known to be written where the connection was lost.
      const version = await written.then(
        (stat) => stat.version,
        () => new Promise<undefined>((resolve) => setImmediate(resolve, undefined)),
      );
      if (version === undefined) continue;
      confirmed++;
      if (version <= last) lost.push(`${path}: ${last} was confirmed, and then ${version}`);
      last = version;
    }
  };
  const more = (count: number): Promise<unknown> => {
    const goal = confirmed + count;
    return eventually(() => confirmed >= goal);
  };
  for (let i = 0; i < WRITERS; i++) void write(clients[i % clients.length]!, `/w${i}`).catch(() => undefined);
  for (let kill = 0; kill < KILLS; kill++) {
    await more(WRITERS * Math.ceil(random() * 15));
    const leads = await Promise.all(members.map((member) => member.leads()));
    // Every other time the leader, if there is one.
    const member = members[kill % 2 === 0 ? Math.max(0, leads.indexOf(true)) : Math.floor(random() * members.length)]!;
    await member.kill();
    // Back while the others elect a leader, or when they have confirmed much that it has to catch up.
    if (random() < 0.5) await more(WRITERS * Math.ceil(random() * 30));
    await member.restart();
  }
  await more(WRITERS);
  isOver = true;
  expect(lost).toEqual([]);
  // As long as a busy machine needs to start Java so often.
}, 1_200_000);
