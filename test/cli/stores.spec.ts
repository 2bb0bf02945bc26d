// The command line on databases, as a config file names them.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { normalised, useCli, withoutProgress } from '../support/cli.js';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';
import { pause } from '../support/time.js';
import { documentIn, startHolder } from './setting.js';

jest.setTimeout(120_000);

const { ndl, start, file } = useCli();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ndl-'));
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([
  ['postgres', 'postgresStore', sharedPostgres],
  ['mysql', 'mysqlStore', sharedMariadb],
] as const)('%s', (kind, store, shared) => {
  let [url, config] = ['', ''];
  beforeAll(async () => {
    ({ url } = await shared());
    config = join(folder, `${kind}.mjs`);
    const lib = JSON.stringify(join(dirname(dirname(file)), `stores/${kind}/${kind}.store.js`));
    writeFileSync(
      config,
      `import { ${store} } from ${lib};\nexport default ${store}({ url: ${JSON.stringify(url)}, schema: 'create', requestTimeout: 5000 });\n`,
    );
  }, 60_000);
  const on = (command: string, ...args: string[]): string[] => [command, '--config', config, ...args];

  it('--url says what is to be done where the table is missing', async () => {
    const { code, stderr } = await ndl(['ls', '--url', url]);
    expect([code, stderr]).toEqual([3, expect.stringMatching(/table/i)]);
  });

  it('ls, show and release', async () => {
    const empty = await ndl(on('ls'));
    expect([empty.code, empty.stdout, withoutProgress(empty.stderr)]).toEqual([0, 'No key is held.\n', '']);
    const holder = await startHolder(kind, { url, requestTimeout: 5_000 });
    holder.send({ type: 'hold', key: 'order:42', label: 'Orders.pay' });
    const { owner } = await holder.waitFor('holds');
    const { stdout } = await ndl(on('ls'));
    expect(normalised(stdout).split('\n')[1]).toMatch(
      /^order:42 {2}mutex {2}shop@<host>:<pid> {2}(Orders.pay|–) {2}<time> {2}<time> {2}0$/,
    );
    expect(documentIn((await ndl(['ls', '--json', '--url', url])).stdout, 'ls').keys[0].holders[0].owner).toBe(owner);
    expect(documentIn((await ndl(on('show', 'order:42', '--json'))).stdout, 'show').key.holders[0].owner).toBe(owner);
    expect((await ndl(on('show', 'free'))).code).toBe(4);
    const release = (named: string) => ndl(on('release', 'order:42', '--owner', named, '--reason', 'test', '--yes', '--json'));
    expect((await release(`${owner}x`)).code).toBe(5);
    const { code, stdout: text } = await release(owner);
    // MySQL has no messages: it cannot be asked there.
    expect([code, documentIn(text, 'release').outcome]).toEqual([0, kind === 'mysql' ? 'forced' : 'gave back']);
    await holder.kill();
  });

  it('run: one at a time, the exit code, and a free key after that', async () => {
    const go = join(folder, `${kind}.go`);
    const first = start(on('run', 'job', '--', 'sh', '-c', 'echo runs; while ! [ -e "$1" ]; do sleep 0.1; done; exit 7', 'sh', go));
    await first.says(/runs/);
    expect((await ndl(on('run', 'job', '--wait', '0', '--', 'true'))).code).toBe(75);
    const next = ndl(on('run', 'job', '--', 'echo', 'next'));
    writeFileSync(go, '');
    expect((await next).stdout).toBe('next\n');
    expect((await first.ended).code).toBe(7);
    expect((await ndl(on('show', 'job'))).code).toBe(4);
  });

  it('watch works where there are messages', async () => {
    const program = start(on('watch'));
    if (kind === 'mysql') {
      expect(await program.ended).toMatchObject({ code: 3, stderr: expect.stringContaining('cannot be watched') });
      return;
    }
    const holder = await startHolder(kind, { url, requestTimeout: 5_000 });
    for (let count = 0; !program.stdout().includes('taken') && count < 60; count++) {
      holder.send({ type: 'hold', key: `k${count}`, label: 'Work' });
      await holder.waitFor('holds');
      await pause(300);
    }
    expect(program.stdout()).toContain('taken');
    await holder.kill();
    program.signal('SIGINT');
    expect((await program.ended).code).toBe(0);
  });
});
