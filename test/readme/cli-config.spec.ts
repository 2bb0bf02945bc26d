import { redisStore } from 'nestjs-distributed-lock/redis';
import config from './cli-config.js';

it('the config file of the command line is one: test/cli runs such files', async () => {
  const { stores, namespace } = config;
  expect([stores.reports.name, namespace]).toEqual(['postgres', 'shop:']);
  await redisStore(stores.default).close();
  await stores.reports.close();
});
