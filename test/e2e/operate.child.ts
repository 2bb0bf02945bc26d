// A process of a service that gets into the situations of docs/operate.md, as it is told to.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

export type OperateOrder =
  | { type: 'work'; key: string; label: string; keyTimeout?: number }
  | { type: 'cross'; first: string; second: string; label: string }
  | { type: 'close' };
export type OperateMessage =
  { type: 'ready' | 'closed' } | { type: 'holds'; key: string; token: number } | { type: 'ended'; key: string; outcome: string };

const [connection, app] = JSON.parse(process.argv[2]!) as [object, string];
const locks = new Locks(redisStore({ options: connection }), { app, visible: true, logger: false });
const patient = { waitTimeout: 60_000, retryInterval: 60_000 };

async function work(key: string, label: string, keyTimeout: number, inside: (signal: AbortSignal) => unknown): Promise<void> {
  const body = async ({ signal, fencingToken }: { signal: AbortSignal; fencingToken: number | null }) => {
    tellParent({ type: 'holds', key, token: fencingToken! });
    await inside(signal);
  };
  const outcome = await locks.using(key, body, { ...patient, keyTimeout, label }).then(
    () => 'done',
    (error: Error) => error.name,
  );
  tellParent({ type: 'ended', key, outcome });
}
const aborted = (signal: AbortSignal) => new Promise((resolve) => signal.addEventListener('abort', resolve));

const orders = {
  work: ({ key, label, keyTimeout = 10_000 }) => void work(key, label, keyTimeout, aborted),
  cross: ({ first, second, label }) =>
    void work(first, label, 10_000, async () => {
      await new Promise((met) => process.once('message', met));
      await locks.using(second, () => undefined, { ...patient, label });
    }),
  close: () => void locks.close().then(() => tellParent({ type: 'closed' })),
} satisfies { [T in OperateOrder['type']]: (order: Extract<OperateOrder, { type: T }>) => void };

process.on('message', (order: OperateOrder) => (orders[order.type] as ((order: OperateOrder) => void) | undefined)?.(order));
tellParent({ type: 'ready' });
