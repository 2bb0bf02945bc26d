import { wrongsOfCrowd } from '../../support/crowd.js';
import { useRedis } from './setting.js';

const setting = useRedis();

it('three processes on Redis, some of which are killed and replaced, lose no update; tokens only grow (G2, G8)', async () => {
  const options = { options: setting.server.connection, requestTimeout: 10_000 };
  expect(await wrongsOfCrowd({ store: 'redis', options, turns: 5_000, kills: 2 })).toBe(0);
});
