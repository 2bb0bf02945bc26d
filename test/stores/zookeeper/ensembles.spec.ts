// Servers that are not of one ensemble, are replaced, or are none at all.
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import { createServer, type AddressInfo } from 'node:net';
import { ZookeeperLink } from '../../../lib/stores/zookeeper/zookeeper.link.js';
import { ZookeeperSession } from '../../../lib/stores/zookeeper/zookeeper.session.js';
import { ZookeeperTable } from '../../../lib/stores/zookeeper/zookeeper.table.js';
import { examined } from '../../doctor/examined.js';
import { eventually } from '../../support/eventually.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { ZOOKEEPER } from '../../support/tcp-proxy-framing.js';
import { startZookeeper, type ZookeeperServer } from '../../support/zookeeper-server.js';

it('hosts of two ensembles in one list make the store unfit for locks', async () => {
  // They answer no word that would tell what they are.
  const start = () => startZookeeper({ config: ['4lw.commands.whitelist=ruok'], word: 'ruok' });
  const servers = await Promise.all([start(), start()]);
  const connectionString = servers.map((server) => server.connectionString).join();
  const report = await examined(zookeeperStore({ connectionString, requestTimeout: 5000 }));
  expect(report.verdict).toMatchObject({ efficiency: 'no' });
  expect(report.of('role')).toMatchObject({ state: 'bad', advice: expect.stringContaining('one') });
  await Promise.all(servers.map((server) => server.stop()));
});

describe('a server by itself', () => {
  let server: ZookeeperServer;
  beforeAll(async () => {
    server = await startZookeeper();
  });
  afterAll(() => server.stop());

  const tableAt = (hosts: string) =>
    new ZookeeperTable(new ZookeeperSession({ client: undefined, hosts, root: '/locks', auth: [], acl: undefined }, 5000));

  it.each(['..', '.', 'a/b', '', '\u0000'])(
    'makes a change with a message to an inbox that is no name, %j, and sends the others',
    async (inbox) => {
      const table = tableAt(server.connectionString);
      const heard: string[] = [];
      await table.wakeUps.open(() => undefined);
      table.wakeUps.listen('owner', () => heard.push('owner'));
      const messages = [inbox, table.wakeUps.inbox].map((to) => ({ inbox: to, text: 'owner' }));
      const change = { key: `hostile ${inbox.length} ${inbox}`, expected: { version: undefined }, text: '', messages };
      expect(await table.exchange([change])[0]).toMatchObject({ written: true });
      await eventually(() => heard.length === 1);
      await table.close();
    },
  );

  it('may be another one after each broken connection, which is said before the next answer', async () => {
    const proxy = await startProxy({ port: server.port }, Math.random, ZOOKEEPER);
    const table = tableAt(`127.0.0.1:${proxy.port}`);
    let replaced = 0;
    table.onReplaced(() => replaced++);
    await table.count();
    expect(replaced).toBe(0);
    proxy.cut();
    // What was sent over the old connection fails.
    await eventually(async () => {
      await table.count();
      expect(replaced).toBeGreaterThan(0);
    });
    await table.close();
    await proxy.close();
  });
});

it('a port at which something else listens is not tried without a pause', async () => {
  let connections = 0;
  const stranger = createServer((socket) => {
    connections++;
    socket
      .resume()
      .on('error', () => undefined)
      .end('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const { port } = stranger.address() as AddressInfo;
  const link = await ZookeeperLink.open(`127.0.0.1:${port}`, [], 2000, () => undefined);
  expect(await link.isConnectedWithin(3000)).toBe(false);
  await link.end();
  expect(connections).toBeGreaterThan(1);
  expect(connections).toBeLessThan(20);
  await new Promise((resolve) => stranger.close(resolve));
});
