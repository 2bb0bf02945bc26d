import { randomUUID } from 'node:crypto';
import { type FSWatcher, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, unlinkSync, watch, writeFileSync } from 'node:fs';
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
  tell(inbox: string, text: string): void {
    const name = encodeURIComponent(text);
    const folder = join(this.inboxes, inbox);
    const draft = join(this.drafts, `${this.inbox}_${randomUUID()}`);
    try {
      if (name.length <= LONGEST_NAME) return writeFileSync(join(folder, name), '');
      writeFileSync(draft, text);
      renameSync(draft, join(folder, LONG + randomUUID()));
    } catch {
      rmSync(draft, { force: true });
    }
  }

  end(): void {
    this.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  protected connect(): InboxConnection {
    return new FolderWatch(this.folder, (text) => this.received(text));
  }

  protected echo(owner: string): Promise<boolean> {
    this.tell(this.inbox, owner);
    return Promise.resolve(true);
  }
}

/** Reads the messages in a directory as soon as the system says that there are some. */
class FolderWatch implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<void>;
  private watcher: FSWatcher | undefined;
  private end: () => void = () => undefined;

  constructor(
    private readonly folder: string,
    private readonly received: (text: string) => void,
  ) {
    this.ended = new Promise((resolve) => (this.end = resolve));
    // After a turn, so that whoever has made it can be told.
    this.listening = Promise.resolve().then(() => this.open());
  }

  close(): void {
    this.watcher?.close();
    this.end();
  }

  private open(): void {
    mkdirSync(this.folder, { recursive: true });
    try {
      this.watcher = watch(this.folder, { persistent: false }, () => this.look());
    } catch (cause) {
      throw new StoreError((cause as Error).message, { transient: false, cause });
    }
    this.watcher.on('error', () => this.close());
  }

  private look(): void {
    try {
      for (const name of readdirSync(this.folder)) this.read(name);
    } catch {
      // Somebody has deleted the directory.
      this.close();
    }
  }

  private read(name: string): void {
    const path = join(this.folder, name);
    const text = name.startsWith(LONG) ? readFileSync(path, 'utf8') : decodeURIComponent(name);
    // First it goes: the same message may come again at once.
    unlinkSync(path);
    this.received(text);
  }
}
