// Works under a key until it is told to end it or, if it may, until its signal aborts.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../../support/child.js';

export interface InspectArgs {
  connection: object;
  key: string;
  keyTimeout: number;
  /** whether it goes on when its signal aborts */
  isStubborn: boolean;
}
export type InspectMessage = { type: 'works'; owner: string; token: number } | { type: 'ended'; result: string };

const { connection, key, keyTimeout, isStubborn } = JSON.parse(process.argv[2]!) as InspectArgs;
const locks = new Locks(redisStore({ options: connection }), { logger: false, app: 'worker' });
void locks.store.bus!.open(() => undefined);
const told = new Promise<string>((resolve) => process.once('message', () => resolve('told')));

const result = await locks
  .using(
    key,
    async ({ signal, owner, fencingToken }) => {
      tellParent({ type: 'works', owner, token: fencingToken! });
      const aborted = new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('aborted')));
      return isStubborn ? await told : await Promise.race([told, aborted]);
    },
    { keyTimeout, label: 'Worker.work' },
  )
  .catch((error: Error) => error.name);
tellParent({ type: 'ended', result });
await locks.close();
process.disconnect();
