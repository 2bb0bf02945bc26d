import { randomUUID } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreError } from '../../core/model/errors.js';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.work.js';
import { nameOfProcess } from './file.host.js';

/** Most bytes of a file's name. */
const LONGEST_NAME = 250;
/** Begins the name of a message that is the content of its file. No encoded text has it. */
const LONG = '+';

/** The inbox of this process: a directory. A message is a file in it, with the text as its name if it is short enough. */
export class FileWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = nameOfProcess(randomUUID());
  private readonly folder: string;

  constructor(
    private readonly inboxes: string,
    private readonly drafts: string,
    requestTimeout: number,
  ) {
    super('File', requestTimeout, 'allow more inotify instances and watches, or a directory that can be watched');
    this.folder = join(inboxes, this.inbox);
  }

  received(text: string): void {
    readMessage(text, (owner, askIn) => void this.wake(owner, askIn));
  }

  /** An inbox that is gone is one of a process that is gone. */
  async tell(inbox: string, text: string): Promise<void> {
    const name = encodeURIComponent(text);
    const folder = join(this.inboxes, inbox);
    if (name.length <= LONGEST_NAME) return writeFile(join(folder, name), '').catch(() => undefined);
    const draft = join(this.drafts, `${this.inbox}_${randomUUID()}`);
    await writeFile(draft, text)
      .then(() => rename(draft, join(folder, LONG + randomUUID())))
      .catch(() => rm(draft, { force: true }));
  }

  async end(): Promise<void> {
    this.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  protected connect(): InboxConnection {
    return new FolderWatch(this.folder, (text) => this.received(text));
  }

  protected async echo(owner: string): Promise<boolean> {
    await this.tell(this.inbox, owner);
    return true;
  }
}

/** Reads the messages in a directory as soon as the system says that there are some. */
class FolderWatch implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<void>;
  private watcher: FSWatcher | undefined;
  private end: () => void = () => undefined;
  private state: 'idle' | 'reading' | 'due' = 'idle';

  constructor(
    private readonly folder: string,
    private readonly received: (text: string) => void,
  ) {
    this.ended = new Promise((resolve) => (this.end = resolve));
    this.listening = this.open();
  }

  close(): void {
    this.watcher?.close();
    this.end();
  }

  private async open(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    try {
      this.watcher = watch(this.folder, { persistent: false }, () => void this.look());
    } catch (cause) {
      throw new StoreError((cause as Error).message, { transient: false, cause });
    }
    this.watcher.on('error', () => this.close());
    this.watcher.on('close', () => this.end());
  }

  private async look(): Promise<void> {
    if (this.state !== 'idle') {
      this.state = 'due';
      return;
    }
    do {
      this.state = 'reading';
      // The directory is gone: a sweep took this process for a dead one, or somebody has deleted it.
      const names = await readdir(this.folder).catch(() => this.close());
      await Promise.all((names ?? []).map((name) => this.read(name)));
    } while ((this.state as string) === 'due');
    this.state = 'idle';
  }

  private async read(name: string): Promise<void> {
    const path = join(this.folder, name);
    try {
      const text = name.startsWith(LONG) ? await readFile(path, 'utf8') : decodeURIComponent(name);
      // First it goes: the same message may come again at once.
      await unlink(path);
      this.received(text);
    } catch {
      // Read already, or not ours.
    }
  }
}
