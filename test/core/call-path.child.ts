// Which files of lib are loaded by the entries of a plain program, and which ones one decorated call passes. Its argument is the connection of a Redis server.
import { type Profiler, Session } from 'node:inspector';
import { tellParent } from '../support/child.js';
import type { RedisConnection } from '../support/redis-server.js';

export type CallPathMessage = { type: 'files'; loaded: string[]; passed: string[] };

const options = JSON.parse(process.argv[2]!) as RedisConnection;
const session = new Session();
session.connect();
/** The inspector answers at once. */
const ask = <T>(method: string, params = {}): T => {
  let answer!: T;
  session.post(method, params, (error, result) => {
    if (error) throw error;
    answer = result as T;
  });
  return answer;
};
const ownFile = (script: string): string[] => /\/lib\/([^?]*\.ts)/.exec(script)?.slice(1) ?? [];

const loaded = new Set<string>();
session.on('Debugger.scriptParsed', ({ params }) => ownFile(params.url).forEach((file) => loaded.add(file)));
const { Locks } = await import('../../lib/core.js');
const { redisStore } = await import('../../lib/stores/redis/redis.store.js');
const locks = new Locks(redisStore({ options }));
await (await locks.acquire('key')).release();
ask('Debugger.enable');
ask('Debugger.disable');
await locks.close();

const { DistributedLock, DistributedLockModule } = await import('../../lib/index.js');
const { Test } = await import('@nestjs/testing');
class Shop {
  @DistributedLock()
  async sell(): Promise<void> {}
}
const module = await Test.createTestingModule({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ options }), failFast: true })],
  providers: [Shop],
}).compile();
await module.init();
const shop = module.get(Shop);
await shop.sell();

ask('Profiler.enable');
ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const passed: Set<string>[] = [];
for (let call = 0; call < 5; call++) {
  ask('Profiler.takePreciseCoverage');
  await shop.sell();
  const { result } = ask<Profiler.TakePreciseCoverageReturnType>('Profiler.takePreciseCoverage');
  const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)));
  passed.push(new Set(ran.flatMap((script) => ownFile(script.url))));
}
// A timer may run beside one of the calls.
const byEach = [...passed[0]!].filter((file) => passed.every((files) => files.has(file)));
tellParent({ type: 'files', loaded: [...loaded], passed: byEach } satisfies CallPathMessage);
await module.close();
