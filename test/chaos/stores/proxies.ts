import type { Framing } from '../../support/tcp-proxy-framing.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import type { StageOptions } from './store.js';

/** A proxy for each worker, before the server at the port for its slot. */
export function startProxies({ slots, random }: StageOptions, portFor: (slot: number) => number, framing?: Framing): Promise<TcpProxy[]> {
  const start = (_: unknown, slot: number): Promise<TcpProxy> => {
    const jitter = random.fork(`proxy ${slot}`);
    return startProxy({ host: '127.0.0.1', port: portFor(slot) }, () => jitter.next(), framing);
  };
  return Promise.all(Array.from({ length: slots }, start));
}
