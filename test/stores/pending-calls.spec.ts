import { type Child, forkChild } from '../support/child.js';
import { freePort } from '../support/free-port.js';
import type { PendingArgs, PendingMessage } from './pending-calls.child.js';

async function fork(store: PendingArgs['store'], ...calls: PendingArgs['calls']): Promise<Child<PendingMessage>> {
  const args = [JSON.stringify({ store, calls, port: await freePort() } satisfies PendingArgs)];
  return forkChild<PendingMessage>('test/stores/pending-calls.child.ts', { args });
}

it('a process that waits without a limit stays until its work has run, and then ends by itself (G8)', async () => {
  const child = await fork('memory', 'using, which waits without a limit');
  await child.waitFor('ran');
  expect(await child.exit).toEqual({ code: 0, signal: null });
});

const RESIGNED = 'redis by options that do not connect again';
const AWAY: [store: PendingArgs['store'], ...calls: PendingArgs['calls']][] = [
  ['redis by its URL', 'using'],
  [RESIGNED, 'using'],
  ['redis by a client of node-redis 5', 'using'],
  ['redis by a client of node-redis 6', 'using'],
  ['postgres', 'using'],
  ['mysql', 'using'],
  ['etcd', 'using'],
  ['zookeeper', 'using'],
  ['quorum', 'using'],
  [RESIGNED, 'acquire', 'using, which waits', 'multiLock', 'inspect', 'getCount'],
  [RESIGNED, 'the start of an app with failFast', 'the start of an app, which then uses a lock'],
];

describe('a process that does nothing else than a call, while its server is away, stays until the call is refused (G9, G10):', () => {
  let children: Child<PendingMessage>[];
  beforeAll(async () => void (children = await Promise.all(AWAY.map((each) => fork(...each)))));

  it.each(AWAY.map(([store, ...calls], index) => [store, calls.join('; '), index] as const))('on %s: %s', async (_store, _calls, index) => {
    const child = children[index]!;
    // As Node ends a process whose rejection nobody handles.
    expect(await child.exit).toEqual({ code: 1, signal: null });
    for (const call of AWAY[index]!.slice(1, -1)) expect(child.output()).toContain(`${call}: StoreError\n`);
    expect(child.output()).toMatch(/\b(Store|Quorum)Error: /);
  });
});
