import { Observable, type Subscriber } from 'rxjs';
import { currentLease } from 'nestjs-distributed-lock';

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
