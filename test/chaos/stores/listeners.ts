import type { EventEmitter } from 'node:events';

/** Returns how to ask for the events of which a client has more listeners than now. */
export function watchListeners(client: EventEmitter): () => string[] {
  const before = countsOf(client);
  return () => [...countsOf(client)].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name, count]) => `${name} ×${count}`);
}

function countsOf(client: EventEmitter): Map<string, number> {
  return new Map(client.eventNames().map((name) => [String(name), client.listenerCount(name)]));
}
