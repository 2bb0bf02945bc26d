import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';

const KEY = 'key';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'locks-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const child = (name: string): string => `${process.execPath} --import tsx test/stores/file/${name}.child.ts ${directory} ${KEY}`;

/** What a script prints, as root of a user namespace of its own. */
function runAs(namespaces: string[], script: string): string {
  return execFileSync('unshare', ['--user', '--map-root-user', ...namespaces, '--fork', 'sh', '-c', script], { encoding: 'utf8' }).trim();
}

/** What a process says that tries to take the key. */
const tryAs = (namespaces: string[], before = ''): string => runAs(namespaces, `${before} exec ${child('trier')}`);

describe('a process with another kernel, beside a holder', () => {
  let locks: Locks;
  beforeEach(() => (locks = new Locks(fileStore({ directory }), { logger: false })));
  afterEach(() => locks.close());

  it('takes the key when it has the same kernel, and the key is free', async () => {
    await (await locks.acquire(KEY)).release();
    expect(tryAs([])).toBe('granted');
  });

  it.each([
    ['another clock', ['--time', '--monotonic', '100000', '--boottime', '100000']],
    // Ends on its clock are long over by the holder's, and it seems to have been started after the record was written.
    ['a clock that has just begun', ['--time', '--monotonic', '-1', '--boottime', '-1']],
  ])('with %s never takes it', async (_name, offsets) => {
    const begun = String(-Math.floor(Number(process.hrtime.bigint()) / 1e9));
    await locks.acquire(KEY, { keyTimeout: 60_000 });
    expect(tryAs(offsets.map((each) => (each === '-1' ? begun : each)))).not.toBe('granted');
  });

  it('with another boot id, as systemd-nspawn makes one, is refused', async () => {
    const id = join(directory, 'id');
    writeFileSync(id, '11111111-2222-3333-4444-555555555555\n');
    await locks.acquire(KEY, { keyTimeout: 60_000 });
    expect(tryAs(['--mount'], `mount --bind ${id} /proc/sys/kernel/random/boot_id &&`)).toMatch(
      /^StoreError, transient: false: .*another kernel.*11111111/,
    );
  });
});

it('a holder loses its lease when the clock since boot goes on without the monotonic one, as in a suspend of the machine', () => {
  const script = `
    set -e
    ${child('sleeper')} &
    trap "kill $! 2> /dev/null || true" EXIT
    until [ -e ${directory}/held ]; do kill -0 $!; sleep 0.1; done
    unshare --time --boottime 3600 --fork cat /proc/uptime > ${directory}/later
    mount --bind ${directory}/later /proc/uptime
    wait`;
  expect(runAs(['--mount'], script)).toMatch(/^The lease of "key" was lost: .*, because the machine was suspended for 60 min\./);
});
