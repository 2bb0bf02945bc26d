// Many callers, ten permits.
import { shared } from './shared.mjs';

export const title = 'W8: a semaphore of 10 permits';

export async function run(bench) {
  const ten = (size) =>
    shared(bench, {
      id: `w8-${size}`,
      title: '10 permits',
      kind: 'permits',
      size,
      callers: 256 / size,
      permits: 10,
      rival: 'redis-semaphore',
    });
  await bench.on('loopback', async () => {
    await ten(1);
    await ten(2);
  });
}
