import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

it('a full disk is an outage, which leaves nothing and ends with it', () => {
  const directory = mkdtempSync(join(tmpdir(), 'locks-'));
  const script = `mount -t tmpfs -o size=64k none ${directory} && exec ${process.execPath} --import tsx test/stores/file/full-disk.child.ts ${directory}`;
  const said = execFileSync('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script], { encoding: 'utf8' });
  rmSync(directory, { recursive: true });
  const outage = 'StoreError, transient: true';
  expect(JSON.parse(said)).toEqual({ outcomes: [outage, outage, outage], drafts: [], after: 'granted' });
});
