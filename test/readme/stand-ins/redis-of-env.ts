import { useRedis, type Setting } from '../../stores/redis/setting.js';

/** As {@link useRedis}, where the snippets look for a server: at REDIS_URL. */
export function useRedisOfEnv(): Setting & { readonly url: string } {
  const before = process.env.REDIS_URL;
  const setting = useRedis() as Setting & { url: string };

  beforeAll(() => {
    const { path, port } = setting.server;
    process.env.REDIS_URL = setting.url = path ?? `redis://127.0.0.1:${port}`;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.REDIS_URL;
    else process.env.REDIS_URL = before;
  });

  return setting;
}
