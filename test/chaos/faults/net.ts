import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { Stage } from '../stores/store.js';
import { fault, type Fault, type Strike } from './fault.js';

/** A fault of the way between one worker and the store, healed when its time is over. */
function net(
  name: string,
  duration: Fault['duration'],
  begin: (proxy: TcpProxy, strike: Strike, stage: Stage) => void | Promise<void>,
): Fault {
  return fault('net', name, duration, async (scene, strike) => {
    const proxy = scene.stage.proxies![strike.slot]!;
    await begin(proxy, strike, scene.stage);
    await scene.pause(strike.duration);
    await proxy.heal();
  });
}

export const netFaults: Fault[] = [
  net('delay and jitter', [300, 3_000], (proxy, { extent }) => proxy.delay(5 + 100 * extent, 150 * extent)),
  net('late requests', [300, 2_000], (proxy, { extent }) => proxy.delay(200 + 1_000 * extent, 0, 'requests')),
  net('late replies', [300, 2_000], (proxy, { extent }) => proxy.delay(200 + 1_000 * extent, 0, 'replies')),
  net('replies lost', [100, 3_000], (proxy) => proxy.dropReplies()),
  net('requests lost', [100, 3_000], (proxy) => proxy.dropRequests()),
  net('black hole', [100, 4_000], (proxy) => proxy.blackhole()),
  net('cut', [0, 0], (proxy) => proxy.cut()),
  net('refused', [100, 3_000], (proxy) => {
    proxy.refuse();
    proxy.cut();
  }),
  net('reply to a change lost, then cut', [200, 1_500], (proxy, { extent }, { change }) => {
    proxy.dropReplyTo(change!, { times: 1 + Math.floor(3 * extent) });
  }),
  // Nothing is healed before the server has got the late requests: healing would not stop them.
  net('cut, and requests delivered late', [0, 3_000], (proxy, { duration, extent }) =>
    proxy.cutLate({ hold: 20 + 280 * extent, late: 200 + duration }),
  ),
];
