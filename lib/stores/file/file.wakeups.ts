import { randomUUID } from 'node:crypto';
import { type FSWatcher, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StoreError } from '../../core/model/errors.js';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import { TopicBus } from '../../core/store/topic-bus.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';
import { namesIn, tryTo } from './file.chain.js';
import { isOfDead, nameOfProcess } from './file.host.js';

/** Most bytes of a file's name. */
const LONGEST_NAME = 250;
/** Bytes of a message: more than this library sends. */
const LONGEST_FILE = 262_144;
/** Milliseconds after which a message that nobody has read tells that its inbox has no process. */
const UNREAD = 60_000;
/** A message of a sweep, which no owner has. */
const KNOCK = 'sweep';
/** Begins the name of a message that is the content of its file. No encoded text has it. */
const LONG = '+';
/** Begins a message of a topic. No owner has it. */
const TO_ALL = '\u0001';

/** The inbox of this process: a directory. A message is a file in it, with the text as its name if it is short enough. */
export class FileWakeUps extends Inbox implements RecordWakeUps {
  readonly inbox = nameOfProcess(randomUUID());
  readonly bus = new TopicBus({
    connection: this.inbox,
    open: (...log) => this.openForBus(...log),
    publish: async (topic, text) => this.sendToAll(`${TO_ALL}${topic}\n${text}`),
  });
  private readonly folder: string;

  constructor(
    private readonly inboxes: string,
    private readonly drafts: string,
    requestTimeout: number,
  ) {
    super('File', requestTimeout, 'allow more inotify instances and watches, or a directory that can be watched');
    this.folder = join(inboxes, this.inbox);
  }

  protected read(text: string): boolean {
    return readMessage(text, (owner, askIn) => void this.wake(owner, askIn));
  }

  /** An inbox that is gone is one of a process that is gone. */
  tell(inbox: string, text: string): void {
    const name = encodeURIComponent(text);
    if (name.length > LONGEST_NAME) return this.send(inbox, text);
    // One that is there already says the same.
    tryTo(() => writeFileSync(join(this.folderOf(inbox), name), '', { flag: 'wx' }));
  }

  private sendToAll(text: string): number {
    const inboxes = readdirSync(this.inboxes).filter((inbox) => !this.isDead(inbox));
    for (const inbox of inboxes) this.send(inbox, text);
    return inboxes.length;
  }

  /** Removes the inboxes that nobody reads. A process that does read, but was stopped, opens its inbox again. */
  sweep(): void {
    for (const inbox of namesIn(this.inboxes)) {
      if (this.isDead(inbox)) rmSync(join(this.inboxes, inbox), { recursive: true, force: true });
      else this.tell(inbox, KNOCK);
    }
  }

  /** Whether its process is gone. That of another container cannot be asked for, but leaves its messages. */
  private isDead(inbox: string): boolean {
    const folder = join(this.inboxes, inbox);
    const isOld = (name: string): boolean => lstatSync(join(folder, name)).mtimeMs < Date.now() - UNREAD;
    return isOfDead(inbox) || tryTo(() => readdirSync(folder).some(isOld)) === true;
  }

  end(): void {
    this.close();
    tryTo(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  protected connect(): InboxConnection {
    return watchFolder(this.folder, this.drafts, (text) => this.received(text));
  }

  override received(text: string): void {
    if (!text.startsWith(TO_ALL)) return super.received(text);
    const end = text.indexOf('\n');
    this.bus.received(text.slice(TO_ALL.length, end), text.slice(end + 1));
  }

  protected echo(owner: string): Promise<boolean> {
    this.tell(this.inbox, owner);
    return Promise.resolve(true);
  }

  private send(inbox: string, text: string): void {
    const draft = join(this.drafts, `${this.inbox}_${randomUUID()}`);
    try {
      writeFileSync(draft, text, { flag: 'wx' });
      renameSync(draft, join(this.folderOf(inbox), LONG + randomUUID()));
    } catch {
      tryTo(() => rmSync(draft, { force: true }));
    }
  }

  /** Anybody may have written the inbox's name, or have put a link there. */
  private folderOf(inbox: string): string {
    const folder = join(this.inboxes, inbox);
    if (!/^[\w-]+$/.test(inbox) || !lstatSync(folder).isDirectory()) throw new Error(`"${inbox}" is no inbox.`);
    return folder;
  }
}

/** Reads the messages in a directory as soon as the system says that there are some. @param received is called with each. */
function watchFolder(folder: string, drafts: string, received: (text: string) => void): InboxConnection {
  let watcher: FSWatcher | undefined;
  let close = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    close = () => {
      watcher?.close();
      resolve();
    };
  });
  const readAll = (): void => {
    try {
      for (const name of readdirSync(folder)) {
        const text = textOf(name, join(folder, name));
        // It is removed first: the same message may come again at once.
        rmSync(join(folder, name), { recursive: true, force: true });
        received(text);
      }
    } catch {
      // Somebody has deleted the directory.
      close();
    }
  };
  const open = (): void => {
    for (const each of [drafts, folder]) mkdirSync(each, { recursive: true });
    try {
      watcher = watch(folder, { persistent: false }, readAll);
    } catch (cause) {
      throw new StoreError((cause as Error).message, { transient: false, cause });
    }
    watcher.on('error', close);
  };
  // After an iteration, so that the caller has it before the first message.
  return { listening: Promise.resolve().then(open), ended, close };
}

/** Reads a message; '': it is not one. Anybody that may write to the directory can put anything there: a large file, a directory, an endless pipe. */
function textOf(name: string, path: string): string {
  try {
    if (!name.startsWith(LONG)) return decodeURIComponent(name);
    const file = lstatSync(path);
    return file.isFile() && file.size <= LONGEST_FILE ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
}
