// A Redis with many keys that are no locks.
import { ndlHere } from '../support/cli.js';
import { documentIn, hold, useRedis } from './setting.js';

const redis = useRedis();

it('ls finds the one key among two million', async () => {
  await hold(redis.service(), 'k');
  const fill = `for i = tonumber(ARGV[1]), tonumber(ARGV[1]) + 19999 do redis.call('SET', 'other:' .. i, i) end`;
  const client = redis.server.client();
  for (let from = 0; from < 2_000_000; from += 20_000) await client.eval(fill, 0, from);
  const { code, stdout, stderr } = await ndlHere(['ls', '--json', '--url', redis.url]);
  expect([code, documentIn(stdout, 'ls').total]).toEqual([0, 1]);
  expect(stderr).toMatch(/^(\d+ keys so far …\n)*$/);
});
