/** Most milliseconds that a waiter has to take the lock that it is offered. */
const LONGEST_OFFER = 1000;

interface QueueEntry {
  readonly key: string;
  /** The member of the queue; see lua/queue.lua. */
  text: string;
}

/** The entries of the waiters of this process in the queues at the server. */
export class QueueEntries {
  private readonly byOwner = new Map<string, QueueEntry>();

  /** The same whenever the owner asks, except that it names the inbox once there is one. */
  of(owner: string, key: string, inbox: string, ttl: number, more: readonly string[]): string {
    let entry = this.byOwner.get(owner);
    if (!entry) this.byOwner.set(owner, (entry = { key, text: [owner, '', Math.min(ttl, LONGEST_OFFER), ...more].join('\n') }));
    if (inbox !== '') entry.text = entry.text.replace('\n\n', `\n${inbox}\n`);
    return entry.text;
  }

  /** Empty: there is none. */
  known(owner: string): string {
    return this.byOwner.size > 0 ? (this.byOwner.get(owner)?.text ?? '') : '';
  }

  /** Nobody listens to the inbox any more: entries that name it are passed over. Returns them; their owners ask by others from now on. */
  withoutInbox(inbox: string): QueueEntry[] {
    const named: QueueEntry[] = [];
    for (const entry of this.byOwner.values()) {
      if (!entry.text.includes(`\n${inbox}\n`)) continue;
      named.push({ ...entry });
      entry.text = entry.text.replace(`\n${inbox}\n`, '\n\n');
    }
    return named;
  }

  forget(owner: string): void {
    this.byOwner.delete(owner);
  }
}
