import { currentLease } from 'nestjs-distributed-lock';

/** A PubSub with one topic, in the process: what it gives ends at once when its reader leaves. */
export class Channel<T> {
  private readonly readers = new Set<(value: T) => void>();
  /** Keys of the locks under which reading has begun, in order. */
  readonly begun: (string | undefined)[] = [];
  /** How many read at once, at most. */
  most = 0;

  publish(value: T): void {
    for (const take of this.readers) take(value);
  }

  iterate(first: T): AsyncIterableIterator<T> {
    const values: T[] = [first];
    const waiting: ((step: IteratorResult<T, undefined>) => void)[] = [];
    const take = (value: T): void => {
      const resolve = waiting.shift();
      if (resolve) resolve({ done: false, value });
      else values.push(value);
    };
    let isOver = false;
    this.begun.push(currentLease()?.key);
    this.readers.add(take);
    this.most = Math.max(this.most, this.readers.size);
    const end = async (): Promise<IteratorResult<T, undefined>> => {
      isOver = true;
      this.readers.delete(take);
      for (const resolve of waiting.splice(0)) resolve({ done: true, value: undefined });
      return { done: true, value: undefined };
    };
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: async () => {
        if (isOver) return { done: true, value: undefined };
        if (values.length > 0) return { done: false, value: values.shift() as T };
        return new Promise((resolve) => waiting.push(resolve));
      },
      return: end,
    };
  }
}
