import type { KeyEvent } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import type { Note, Numbers } from './dashboard.protocol.js';

const MINUTE = 60_000;
/** Events of each kind that are kept, and that a page gets. */
const MOST = { kept: 500, sent: 50 };
/** The last ones of one key. */
const SHOWN = 20;

/** An event of a process, with its owner, or one that the dashboard has seen itself. */
type Happened = Omit<Note, 'store' | 'key'> & { readonly key: string; readonly owner?: string | undefined };

/** The events of one store. */
export class Notes {
  private readonly kept = new Map<Note['event'], Map<string, Happened>>();
  /** Made again after each new event, not for each page. */
  private notes: Map<Note['event'], Note[]> | undefined;

  /** @param nameOf hides what keys say, if the app wants that. Reasons may name them. */
  constructor(
    private readonly store: string,
    private readonly nameOf: (key: string) => string,
    private readonly hidesReasons: boolean,
  ) {}

  /** Events of processes: one that has happened again replaces what was known of it. */
  heard(events: readonly KeyEvent[]): void {
    for (const { event, key, owner, label = null, by = null, reason = null, held, waited, at, firstAt, count, ...of } of events) {
      const times = {
        at: at.getTime(),
        firstAt: firstAt.getTime(),
        count,
        lasted: held ?? (event === 'skipped' ? null : (waited ?? null)),
      };
      this.add({ event, key, owner, label, by, reason, ...times, process: owner === undefined ? processOf(of) : processOf(owner) });
    }
  }

  add(happened: Happened): void {
    const { event, key, owner, label, by, firstAt, process } = happened;
    this.notes = undefined;
    const all = this.kept.get(event) ?? new Map<string, Happened>();
    this.kept.set(event, all);
    const id = JSON.stringify([key, owner, label, by, event === 'forced' ? '' : [firstAt, process]]);
    all.delete(id);
    all.set(id, happened);
    if (all.size > MOST.kept) all.delete(all.keys().next().value!);
  }

  /** The last ones of each kind, the newest first. */
  get all(): Note[] {
    return [...this.folded.values()].flatMap((notes) => notes.slice(0, MOST.sent)).sort((a, b) => b.at - a.at);
  }

  /** The last ones of a key, as it is shown, the newest first. */
  of(name: string): Note[] {
    const notes = [...this.folded.values()].flat().filter(({ key }) => key === name);
    return notes.sort((a, b) => b.at - a.at).slice(0, SHOWN);
  }

  /** How often things happened in the last five minutes. */
  counts(time: number): Pick<Numbers, 'lost' | 'timeouts' | 'failed'> {
    const sum = (event: Note['event']): number => {
      const notes = this.folded.get(event) ?? [];
      return notes.reduce((all, { at, count }) => all + (at > time - 5 * MINUTE ? count : 0), 0);
    };
    return { lost: sum('lost') + sum('ran out'), timeouts: sum('timeout'), failed: sum('failed') };
  }

  private get folded(): Map<Note['event'], Note[]> {
    return (this.notes ??= this.fold());
  }

  /** Each event once, however many processes report it: equal ones of a minute together. */
  private fold(): Map<Note['event'], Note[]> {
    const of = (event: Note['event']): Happened[] => [...(this.kept.get(event)?.values() ?? [])];
    const tenure = ({ key, owner }: Happened): string => `${key} ${owner}`;
    // A process that goes on after a pause finds its loss itself. One that gets no messages takes what an operator does for a loss.
    const forced = new Set(of('forced').map(tenure));
    const lost = new Set(of('lost').map(tenure));
    const isTold = (one: Happened): boolean =>
      (one.event === 'lost' && forced.has(tenure(one))) || (one.event === 'ran out' && (lost.has(tenure(one)) || forced.has(tenure(one))));
    const folded = new Map<Note['event'], Note[]>();
    for (const event of this.kept.keys()) {
      const notes = new Map<string, Note>();
      for (const happened of of(event).filter((one) => !isTold(one))) {
        const { owner, ...note } = happened;
        const minute = Math.floor(note.firstAt / MINUTE);
        const id = JSON.stringify(event === 'forced' ? [note.key, owner, note.by] : [note.key, note.label, note.by, minute]);
        const known = notes.get(id);
        const reason = this.hidesReasons && event !== 'outage' ? null : note.reason;
        const named = { ...note, reason, store: this.store, key: note.key && this.nameOf(note.key) };
        notes.set(id, known ? joined(known, named) : named);
      }
      folded.set(
        event,
        [...notes.values()].sort((a, b) => b.at - a.at),
      );
    }
    return folded;
  }
}

function joined(one: Note, other: Note): Note {
  const last = one.at > other.at ? one : other;
  const process = one.process === other.process ? one.process : 'several processes';
  // Two processes tell what one operator does once.
  const count = one.event === 'forced' ? 1 : one.count + other.count;
  return { ...last, label: one.label ?? other.label, process, firstAt: Math.min(one.firstAt, other.firstAt), count };
}
