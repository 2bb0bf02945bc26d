import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FileTable } from '../../../../lib/stores/file/file.table.js';
import { fault, stageOf, type Fault, type Group, type Strike } from '../../faults/fault.js';
import { FileStage } from './stage.js';

/** ms after its end when a key may be removed here; the store itself waits for an hour. */
const ENDED_FOR = 5_000;
/** of processes that never were: above the largest pid of Linux */
const NOBODY = 4_194_305;
const run = promisify(execFile);

/** Faults of the files that the processes use. */
export const fileFaults: readonly Fault[] = [
  files('files', 'inbox removed', (directory, { extent }) => removeOne(directory, 'inboxes', extent)),
  files('files', 'all inboxes removed', (directory) => remove(directory, 'inboxes')),
  files('files', 'drafts removed', (directory) => remove(directory, 'drafts')),
  files('files', 'litter of dead processes', (directory, { at }) => {
    const names = [1, 2, 3].map((n) => `${NOBODY + n}_0_none_${at}`);
    for (const name of names) {
      mkdirSync(join(directory, 'inboxes', name), { recursive: true });
      writeFileSync(join(directory, 'inboxes', name, 'message'), '');
      mkdirSync(join(directory, 'drafts', `${name}_${at}`), { recursive: true });
    }
  }),
  files('files', 'another kernel wants a key', async (directory) => {
    const key = keyInUse(directory);
    if (key === undefined) return;
    const id = join(directory, 'boot-id');
    writeFileSync(id, randomUUID());
    const say = `exec '${process.execPath}' --import tsx test/stores/file/trier.child.ts '${directory}' '${key}'`;
    const script = `mount --bind '${id}' /proc/sys/kernel/random/boot_id && ${say}`;
    const start = performance.now();
    const { stdout } = await run('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script]);
    // On a busy machine the key may have been free for a minute, after which another kernel may have it.
    if (stdout.startsWith('granted') && performance.now() - start > 59_000) return;
    if (!stdout.startsWith('StoreError, transient: false')) throw new Error(`It is not refused: ${stdout}`);
  }),
  files('files', 'swept', (directory) => new FileTable(directory, 1_000).sweep(ENDED_FOR)),
  files('loss', 'all keys removed', (directory) => remove(directory, 'keys')),
  files('loss', 'key removed', (directory, { extent }) => removeOne(directory, 'keys', extent)),
];

function files(group: Group, name: string, act: (directory: string, strike: Strike) => void | Promise<void>): Fault {
  return fault(group, name, [0, 0], async (scene, strike) => act(stageOf(FileStage, scene).directory, strike));
}

/** One that was changed within the last second: it is not swept meanwhile. */
function keyInUse(directory: string): string | undefined {
  for (const name of readdirSync(join(directory, 'keys'))) {
    const folder = join(directory, 'keys', name);
    try {
      const last = join(folder, readdirSync(folder).sort().at(-1) ?? '');
      const { mtimeMs } = statSync(last);
      if (mtimeMs > Date.now() - 1_000) return (JSON.parse(readFileSync(last, 'utf8')) as { key: string }).key;
    } catch {
      // It was changed, or removed, at this moment.
    }
  }
  return undefined;
}

/** At once: others write there meanwhile. */
function remove(directory: string, ...names: string[]): void {
  const gone = join(directory, `gone-${randomUUID()}`);
  try {
    renameSync(join(directory, ...names), gone);
  } catch (error) {
    // It is not there.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  // A writer that has opened its draft before may still put a file there.
  rmSync(gone, { recursive: true, force: true, maxRetries: 10, retryDelay: 10 });
}

function removeOne(directory: string, folder: string, extent: number): void {
  const names = existsSync(join(directory, folder)) ? readdirSync(join(directory, folder)) : [];
  const name = names[Math.floor(extent * names.length)];
  if (name !== undefined) remove(directory, folder, name);
}
