// Three processes of ten callers each, who all want one key, and add to a log that nothing else guards.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wrongsOfCrowd } from '../support/crowd.js';
import { startPgbouncer } from '../support/pgbouncer.js';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

const requestTimeout = 10_000;
const STORES = {
  file() {
    const directory = mkdtempSync(join(tmpdir(), 'locks-'));
    ends.push(() => rmSync(directory, { recursive: true }));
    return { store: 'file', options: { directory, requestTimeout } } as const;
  },
  mysql: async () => ({ store: 'mysql', options: { url: (await sharedMariadb()).url, schema: 'create', requestTimeout } }) as const,
  postgres: async () => ({ store: 'postgres', options: { url: (await sharedPostgres()).url, schema: 'create', requestTimeout } }) as const,
  async 'postgres behind a pooler, where they poll,'() {
    const bouncer = await startPgbouncer({ to: (await sharedPostgres()).connection });
    ends.push(() => bouncer.stop());
    return { store: 'postgres', options: { url: bouncer.url, schema: 'create', requestTimeout } } as const;
  },
};

it.each<[keyof typeof STORES, number, number]>([
  ['file', 10_000, 0],
  ['file', 1_000, 4],
  ['mysql', 0, 4],
  ['postgres', 300, 2],
  ['postgres behind a pooler, where they poll,', 300, 0],
])(
  'on %s they lose no update in %d turns or more, and tokens only grow, though %d of them are killed (G2, G8)',
  async (on, turns, kills) => {
    expect(await wrongsOfCrowd({ ...(await STORES[on]()), turns, kills })).toBe(0);
  },
);

it('without a lock they lose updates', async () => {
  expect(await wrongsOfCrowd({ ...STORES.file(), turns: 2_000, isGuarded: false })).toBeGreaterThan(0);
});
