import type { KeyEvent } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import type { WatchedEvent } from '../operate/other-processes.js';
import type { Note } from './dashboard.protocol.js';

const MINUTE = 60_000;
/** Notes that are kept: time-outs have a cap of their own, so that they do not push out what matters more. */
const MOST = { timeout: 200, others: 300 };
const MOST_RELEASES = 2000;
const SHOWN = 20;
const EVENTS = ['lost', 'timeout', 'forced', 'failed', 'aborted', 'released', 'gave back', 'held by hand'];

/** An event of a key, or an order of an operator. */
export type Noted = Omit<WatchedEvent, 'event'> & { readonly event: KeyEvent['event'] | Note['event'] };

/** The events that an operator looks for afterwards. */
export class Notes {
  private readonly kept: Record<keyof typeof MOST, Map<string, Note>> = { timeout: new Map(), others: new Map() };
  private fresh = new Map<string, Note>();
  private releases: Note[] = [];

  get all(): Note[] {
    return [...this.kept.timeout.values(), ...this.kept.others.values()];
  }

  /** @param key as it is shown. */
  add(store: string, key: string, event: Noted, hidesReason = false): void {
    const { event: name, label = null, owner, reason = null, by = null, app, host, pid, held = null, count = 1 } = event;
    if (!EVENTS.includes(name)) return;
    const at = event.at.getTime();
    const process = owner === undefined ? `${app}@${host}:${pid}` : processOf(owner);
    const told = { at, firstAt: event.firstAt?.getTime() ?? at, count, by, label, process, held };
    const note: Note = { store, key, event: name as Note['event'], reason: hidesReason ? null : reason, ...told };
    if (name === 'released') {
      if (this.releases.push(note) > MOST_RELEASES) this.releases = this.releases.slice(-MOST_RELEASES / 2);
      return;
    }
    const kept = this.kept[name === 'timeout' ? 'timeout' : 'others'];
    const id = noteId(note);
    const known = kept.get(id);
    const folded = known ? folding(known, note) : note;
    kept.delete(id);
    kept.set(id, folded);
    this.fresh.set(id, folded);
    if (kept.size > MOST[name === 'timeout' ? 'timeout' : 'others']) kept.delete(kept.keys().next().value!);
  }

  /** The notes that are new, or have changed, since the last call. */
  take(): Note[] {
    const taken = [...this.fresh.values()];
    this.fresh.clear();
    return taken;
  }

  /** How often it happened in the last five minutes. */
  recent(event: Note['event']): number {
    return this.all.reduce((sum, note) => sum + (note.event === event && note.at > Date.now() - 5 * MINUTE ? note.count : 0), 0);
  }

  /** The last ones of a key, the newest first. */
  of(store: string, key: string): Note[] {
    const notes = [...this.all, ...this.releases].filter((note) => note.store === store && note.key === key);
    return notes
      .reverse()
      .sort((a, b) => b.at - a.at)
      .slice(0, SHOWN);
  }
}

/** Equal notes of one minute are one. */
function noteId({ event, store, key, label, process, by, firstAt }: Note): string {
  return JSON.stringify([event, store, key, label, event === 'timeout' ? '' : process, by, Math.floor(firstAt / MINUTE)]);
}

function folding(known: Note, note: Note): Note {
  const process = known.process === note.process ? note.process : 'several processes';
  const [firstAt, at] = [Math.min(known.firstAt, note.firstAt), Math.max(known.at, note.at)];
  return { ...note, at, firstAt, count: known.count + note.count, process };
}
