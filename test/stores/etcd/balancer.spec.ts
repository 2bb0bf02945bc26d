// A balancer before etcd, which has no server to pass on to for a while. It answers with a page then, whether or not etcd has got the request.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { runStandby } from 'nestjs-distributed-lock/core';
import { type Balancer, startBalancer } from '../../support/balancer.js';
import { type EtcdServer, startEtcd } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { open } from './setting.js';

@Module({})
class AppModule {}

let server: EtcdServer;
let balancer: Balancer;
beforeAll(async () => {
  server = await startEtcd();
  balancer = await startBalancer([server.url]);
});
afterAll(async () => {
  await balancer.close();
  await server.stop();
});

// What stays taken, stays so for longer than the test.
const through = () =>
  open({ endpoints: [balancer.url], requestTimeout: 5000 }, { defaults: { keyTimeout: 600_000, waitTimeout: 100_000 } });

/** Until so many requests have got a page. */
async function outage(pages = 40): Promise<void> {
  balancer.down();
  const { pages: before } = balancer;
  await eventually(() => balancer.pages >= before + pages);
  balancer.up();
}

it('pages for a while reject no call, and leave no key taken', async () => {
  const keys = ['order:1', 'order:2', 'order:3', 'order:4'];
  const processes = [through(), through()];
  let [isOver, sections] = [false, 0];
  const callers = processes.flatMap((locks) =>
    [...keys, ...keys].map(async (key) => {
      while (!isOver) await locks.using(key, async () => void sections++);
    }),
  );
  const all = Promise.all(callers);
  await eventually(() => sections > 50);
  for (let times = 0; times < 3; times++) {
    await outage();
    const before = sections;
    await eventually(() => sections > before + callers.length);
  }
  isOver = true;
  await all;
  const direct = open({ endpoints: [server.url] });
  for (const key of keys) await (await direct.acquire(key)).release();
});

it('pages for a while end no election: its leader leads on, and who stands by leads after it', async () => {
  const elected: string[] = [];
  const stand = (name: string) => {
    const election = through().leaderElection('billing');
    const running = election.run(async ({ signal }) => {
      elected.push(name);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    running.catch(() => undefined);
    return { running, resign: () => election.resign() };
  };
  const direct = open({ endpoints: [server.url] });
  const first = stand('first');
  await eventually(() => elected.length === 1);
  const second = stand('second');
  await eventually(async () => (await direct.inspect('billing-leader')).waiters.length === 1);
  const impatient = through().acquire('billing-leader', { retryInterval: 10, waitTimeout: 600_000 });
  impatient.catch(() => undefined);
  await outage();
  expect(elected).toEqual(['first']);
  await first.resign();
  await Promise.race([second.running, eventually(() => elected.length === 2)]);
  expect(elected).toEqual(['first', 'second']);
  await second.resign();
  await (await impatient).release();
  await Promise.all([first.running, second.running]);
});

it('an app that is started during an outage stands by, and leads when it is over', async () => {
  balancer.down();
  let isStarted = false;
  const standby = runStandby({
    locks: through(),
    name: 'app',
    create: () => NestFactory.create(AppModule, { logger: false }),
    async start(app) {
      await app.init();
      isStarted = true;
    },
  });
  standby.done.catch(() => undefined);
  const { pages } = balancer;
  await eventually(() => balancer.pages >= pages + 5);
  balancer.up();
  await Promise.race([standby.done, eventually(() => isStarted)]);
  expect(isStarted).toBe(true);
  await standby.stop();
});
