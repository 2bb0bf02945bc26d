import type { RedisClient } from './redis.client.js';
import type { RedisRequest } from './redis.request.js';

/** Functions by the event of the client that they are for. */
type Listeners = Readonly<Record<string, (cause: unknown) => void>>;

/** Requests that wait until a client is connected. It has these listeners only meanwhile. */
export class UnsentRequests {
  private readonly all = new Set<RedisRequest>();
  private stopListening = (): void => undefined;

  get size(): number {
    return this.all.size;
  }

  add(request: RedisRequest, client: RedisClient, listeners: Listeners): void {
    if (this.all.size === 0) this.listen(client, Object.entries(listeners));
    this.all.add(request);
  }

  delete(request: RedisRequest): void {
    if (this.all.delete(request) && this.all.size === 0) this.stopListening();
  }

  /** Removes all of them. */
  take(): RedisRequest[] {
    const all = [...this.all];
    for (const each of all) this.delete(each);
    return all;
  }

  private listen(client: RedisClient, listeners: [event: string, listener: (cause: unknown) => void][]): void {
    for (const [event, listener] of listeners) client.on(event, listener);
    this.stopListening = () => {
      for (const [event, listener] of listeners) client.off(event, listener);
    };
  }
}
