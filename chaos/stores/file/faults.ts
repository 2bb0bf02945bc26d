import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import type { Fault, Strike } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { FileStage } from './stage.js';

/** ms after its end when a key may be removed here; the store itself waits for an hour. */
const ENDED_FOR = 5_000;
/** of processes that never were: above the largest pid of Linux */
const NOBODY = 4_194_305;

/** What happens to the files under the feet of the processes. */
export const fileFaults: readonly Fault[] = [
  files('files', 'inbox removed', (directory, { extent }) => {
    const inboxes = readdirSync(join(directory, 'inboxes'));
    remove(directory, 'inboxes', ...inboxes.slice(Math.floor(extent * inboxes.length)).slice(0, 1));
  }),
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
  files('files', 'swept', (directory) => new FileTable(directory, 1_000).sweep(ENDED_FOR)),
  files('loss', 'all keys removed', (directory) => remove(directory, 'keys')),
  files('loss', 'key removed', (directory, { extent }) => {
    const keys = readdirSync(join(directory, 'keys'));
    remove(directory, 'keys', ...keys.slice(Math.floor(extent * keys.length)).slice(0, 1));
  }),
];

function files(group: Fault['group'], name: string, act: (directory: string, strike: Strike) => void | Promise<void>): Fault {
  async function strike({ stage }: Scene, one: Strike): Promise<void> {
    if (!(stage instanceof FileStage)) throw new Error('This fault needs files');
    await act(stage.directory, one);
  }
  return { group, name, duration: [0, 0], strike };
}

/** While others write there. */
function remove(...names: string[]): void {
  rmSync(join(...names), { recursive: true, force: true, maxRetries: 5 });
}
