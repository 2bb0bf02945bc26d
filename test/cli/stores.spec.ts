// The command line on databases, by URL and by a config file.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ndlHere, normalised, startHere, useCli } from '../support/cli.js';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';
import { documentIn, hold, useServices } from './setting.js';

const cli = useCli();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ndl-'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([
  ['postgres', postgresStore, sharedPostgres],
  ['mysql', mysqlStore, sharedMariadb],
] as const)('%s', (kind, makeStore, shared) => {
  let url = '';
  beforeAll(async () => void ({ url } = await shared()));
  const service = useServices(() => makeStore({ url, schema: 'create' }));
  const ndl = (command: string, ...args: string[]) => ndlHere([command, '--url', url, ...args]);

  it('says what is to be done where the table is missing', async () => {
    expect(await ndl('ls')).toMatchObject({ code: 3, stderr: expect.stringMatching(/table/i) });
  });

  it('ls, show and release', async () => {
    const { owner } = await hold(service(), 'order:42', 'Orders.pay');
    expect(normalised((await ndl('ls')).stdout).split('\n')[1]).toMatch(
      /^order:42 {2}mutex {2}shop@<host>:<pid> {2}(Orders.pay|–) {2}<time> {2}<time> {2}0$/,
    );
    expect(documentIn((await ndl('ls', '--json')).stdout, 'ls').keys[0]?.holders[0]?.owner).toBe(owner);
    expect(documentIn((await ndl('show', 'order:42', '--json')).stdout, 'show').key.holders[0]?.owner).toBe(owner);
    expect((await ndl('show', 'free')).code).toBe(4);
    const release = (named: string) => ndl('release', 'order:42', '--owner', named, '--reason', 'test', '--yes', '--json');
    expect((await release(`${owner}x`)).code).toBe(5);
    const { code, stdout } = await release(owner);
    // MySQL has no messages: it cannot be asked there.
    expect([code, documentIn(stdout, 'release').outcome]).toEqual([0, kind === 'mysql' ? 'forced' : 'gave back']);
    expect((await ndl('ls')).stdout).toBe('No key is held.\n');
  });

  it('run by a config file: one at a time, the exit code, and a free key after that', async () => {
    const [config, go] = [join(folder, `${kind}.mjs`), join(folder, `${kind}.go`)];
    const lib = JSON.stringify(join(cli.folder(), `stores/${kind}/${kind}.store.js`));
    const store = `${kind}Store({ url: ${JSON.stringify(url)}, schema: 'create' })`;
    writeFileSync(config, `import { ${kind}Store } from ${lib};\nexport default ${store};\n`);
    const run = ['run', 'job', '--config', config];
    const first = cli.start([...run, '--', 'sh', '-c', 'echo runs; while ! [ -e "$1" ]; do sleep 0.1; done; exit 7', 'sh', go]);
    await first.says(/runs/);
    expect((await ndl('run', 'job', '--wait', '0', '--', 'true')).code).toBe(75);
    const next = cli.ndl([...run, '--', 'echo', 'next']);
    writeFileSync(go, '');
    expect([(await next).stdout, (await first.ended).code]).toEqual(['next\n', 7]);
    expect((await ndl('show', 'job')).code).toBe(4);
  });

  it('watch works where there are messages', async () => {
    const program = startHere(['watch', '--url', url]);
    if (kind === 'mysql') {
      expect(await program.ended).toMatchObject({ code: 3, stderr: expect.stringContaining('cannot be watched') });
      return;
    }
    const shop = service();
    await hold(shop, 'k', 'Work');
    await shop.acquire('k', { waitTimeout: 20 }).catch(() => undefined);
    await program.says(/timed out/);
    program.signal('SIGINT');
    expect((await program.ended).code).toBe(0);
  });
});
