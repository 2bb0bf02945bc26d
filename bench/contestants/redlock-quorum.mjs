// redlock 5 over several servers, as its own documents use it.
import Redlock from 'redlock';
import { connect } from './client.mjs';

/** @param retryDelay milliseconds; 0: one try. */
export function openRedlock(ports, retryDelay) {
  const clients = ports.map((port) => connect(port));
  const redlock = new Redlock(clients, { retryCount: retryDelay === 0 ? 0 : -1, retryDelay, retryJitter: Math.round(retryDelay / 2) });
  redlock.on('error', () => undefined);
  return {
    acquire: (key, { keyTimeout = 10_000 } = {}) => redlock.acquire([key], keyTimeout),
    close: () => {
      for (const client of clients) client.disconnect();
    },
  };
}
