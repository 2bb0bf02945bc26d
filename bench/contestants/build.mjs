// Another build of this library, as an app uses it; `as`: its folder.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export async function open({ port, as: folder }) {
  const load = (file) => import(pathToFileURL(join(folder, 'dist/esm', file)));
  const { Locks } = await load('core.js');
  const { redisStore } = await load('stores/redis/redis.store.js');
  const locks = new Locks(redisStore({ url: `redis://127.0.0.1:${port}` }), { logger: false });
  return {
    version: folder,
    async locked(key, _, work) {
      const lease = await locks.acquire(key, { keyTimeout: 30_000, waitTimeout: Infinity });
      await work();
      await lease.release();
    },
    close: () => locks.close(),
  };
}
