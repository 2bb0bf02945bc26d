import { Observable, type Subscriber } from 'rxjs';
import { currentLease } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';

export interface SseEvent {
  type: string;
  data: string;
}

/** What a browser's EventSource does, but for coming back by itself. */
export class SseClient {
  readonly events: SseEvent[] = [];
  status: number | undefined;
  /** The server has ended the stream. */
  hasEnded = false;
  private readonly abort = new AbortController();

  constructor(url: string) {
    void this.listen(url).catch(() => undefined); // ends so when it leaves
  }

  leave(): void {
    this.abort.abort();
  }

  /** Waits until so many events have come; returns their data. */
  async data(count: number): Promise<string[]> {
    await eventually(() => this.events.length >= count);
    return this.events.map(({ data }) => data);
  }

  private async listen(url: string): Promise<void> {
    const response = await fetch(url, { signal: this.abort.signal, headers: { accept: 'text/event-stream' } });
    this.status = response.status;
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      const messages = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
      text = messages.pop() ?? '';
      this.events.push(...messages.map(eventOf).filter(({ data }) => data !== ''));
    }
    this.hasEnded = true;
  }
}

function eventOf(message: string): SseEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(message)?.[1];
  return { type: field('event') ?? 'message', data: field('data') ?? '' };
}

export interface Message {
  data: string;
}

/** What a handler streams: notes who is connected, and leaves it to the test what comes next. */
export class Feed {
  /** The streams that were begun, in order. */
  readonly begun: Subscriber<Message>[] = [];
  /** How many were open at once, at most. */
  most = 0;
  private open = 0;

  /** Begins with the key of the lock that it is in. */
  stream(): Observable<Message> {
    return new Observable((subscriber) => {
      this.begun.push(subscriber);
      this.most = Math.max(this.most, ++this.open);
      subscriber.next({ data: currentLease()?.key ?? 'unlocked' });
      return () => void this.open--;
    });
  }
}
