import { forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { type Pgbouncer, startPgbouncer } from '../../support/pgbouncer.js';
import { usePostgres } from './setting.js';

type Message = { type: 'started' } | { type: 'done' };

const setting = usePostgres();
const start = (url: string) => {
  const child = forkChild<Message>('test/stores/postgres/crowd.child.ts', { args: [url, '5', '30'] });
  setting.closes(async () => (await child).kill());
  return child;
};
const entries = async () => Number((await setting.sql('SELECT count(*)::int AS n FROM crowd_entries'))[0]!['n']);

beforeEach(async () => {
  await setting.sql('DROP TABLE IF EXISTS crowd, crowd_entries');
  await setting.sql('CREATE TABLE crowd AS SELECT 0 AS n, 0::bigint AS token');
  await setting.sql('CREATE TABLE crowd_entries (n int, token bigint)');
});

/** No two wrote the same number, and tokens only grow. */
async function expectNoneLost(atLeast: number) {
  const rows = await setting.sql('SELECT n, token::float8 FROM crowd_entries ORDER BY token');
  const numbers = rows.map(({ n }) => Number(n));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(new Set(rows.map(({ token }) => token)).size).toBe(rows.length);
  expect(numbers.length).toBeGreaterThanOrEqual(atLeast);
}

describe('processes that share a key on Postgres', () => {
  it('lose no update, though some are killed; tokens only grow (G2)', async () => {
    const children = await Promise.all([1, 2, 3, 4].map(() => start(setting.url)));
    for (const [index, victim] of children.slice(0, 2).entries()) {
      await eventually(async () => (await entries()) >= 40 * (index + 1), { within: 30_000 });
      await victim.kill();
    }
    await Promise.all(children.slice(2).map((child) => child.waitFor('done', { within: 40_000 })));
    await expectNoneLost(300);
  }, 90_000);

  it('lose no update behind a pooler, where they poll', async () => {
    const bouncer: Pgbouncer = await startPgbouncer({ to: setting.connection });
    setting.closes(() => bouncer.stop());
    const children = await Promise.all([1, 2].map(() => start(bouncer.url)));
    await Promise.all(children.map((child) => child.waitFor('done', { within: 60_000 })));
    await expectNoneLost(300);
    expect(await entries()).toBe(300);
  }, 90_000);
});
