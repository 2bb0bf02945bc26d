import type { CrowdArgs, CrowdMessage } from './crowd.child.js';
import { forkChild, type Child } from '../../support/child.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { useQuorum } from './setting.js';

const setting = useQuorum(3);
let counting: RedisServer;
beforeAll(async () => {
  counting = await startRedis();
});
afterAll(() => counting.stop());

it.each([
  { processes: 4, callers: 25, turns: 2 },
  { processes: 10, callers: 1, turns: 10 },
])(
  'the callers of $processes processes with $callers each lose no update, and hardly a vote is split',
  async ({ processes, callers, turns }) => {
    const key = setting.newKey();
    const redis = counting.client();
    await redis.set('counter', 0);
    const args: CrowdArgs = {
      connections: setting.servers.map(({ connection }) => connection),
      counter: counting.connection,
      key,
      callers,
      turns,
    };
    const children: Child<CrowdMessage>[] = [];
    setting.finally(() => Promise.all(children.map((child) => child.kill().catch(() => child.exit))));
    for (let n = 0; n < processes; n++)
      children.push(await forkChild<CrowdMessage>('test/stores/quorum/crowd.child.ts', { args: [JSON.stringify(args)] }));
    for (const child of children) await child.waitFor('ready');
    for (const child of children) child.send({ begin: true });
    const done = await Promise.all(children.map((child) => child.waitFor('done')));
    const sections = processes * callers * turns;
    expect(Number(await redis.get('counter'))).toBe(sections);
    const tokens = done.flatMap((each) => each.tokens);
    expect(new Set(tokens).size).toBe(sections);
    // At the start all ask at once, before anybody waits in line; on a busy machine the second vote of a process can be split, too.
    const split = done.reduce((sum, { splitVotes }) => sum + splitVotes, 0);
    process.stderr.write(`${split} split votes in ${sections} sections\n`);
    expect(split).toBeLessThanOrEqual(2 * processes);
  },
);
