import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileTable } from '../../../../lib/stores/file/file.table.js';
import { leftoversIn, type StoredRecord } from '../records/leftovers.js';
import type { Leftover, Stage, StageOptions } from '../store.js';
import { fileFaults } from './faults.js';
import type { FileTarget } from './worker.js';

/** A directory. There is no server. */
export class FileStage implements Stage {
  readonly knowsDeaths = true;
  readonly faults = fileFaults;
  readonly directory = mkdtempSync(join(tmpdir(), 'chaos-files-'));

  constructor() {
    for (const name of ['keys', 'inboxes', 'drafts']) mkdirSync(join(this.directory, name));
  }

  target(): FileTarget {
    return { directory: this.directory };
  }

  /** Records, and what processes have left of their inboxes. A killed one leaves them to the next sweep. */
  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    await new FileTable(this.directory, 1_000).sweep();
    const ofProcesses = ['inboxes', 'drafts'].flatMap((folder) => {
      return this.namesIn(folder).map((name) => ({ key: name, what: `${folder}/${name}` }));
    });
    const { records, time } = await this.lasting();
    return [...ofProcesses, ...leftoversIn(records, time, pidsOfKilled)];
  }

  lasting(): Promise<{ records: StoredRecord[]; time: number }> {
    const time = Number(process.hrtime.bigint()) / 1e6;
    return Promise.resolve({ records: this.namesIn('keys').flatMap((name) => this.read(name) ?? []), time });
  }

  async stop(): Promise<void> {
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** The last state of a key. */
  private read(name: string): StoredRecord | undefined {
    const last = this.namesIn(join('keys', name)).sort().at(-1);
    return last === undefined ? undefined : (JSON.parse(readFileSync(join(this.directory, 'keys', name, last), 'utf8')) as StoredRecord);
  }

  private namesIn(folder: string): string[] {
    try {
      return readdirSync(join(this.directory, folder));
    } catch {
      return [];
    }
  }
}

export async function startStage(_options: StageOptions): Promise<FileStage> {
  return new FileStage();
}
