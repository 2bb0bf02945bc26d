// 10,000 callers on one key in one process.
import { crowd } from './crowd.mjs';

export const title = 'W6: 10,000 callers on one key';

export async function run(bench) {
  await bench.on('loopback', () =>
    crowd(bench, {
      id: 'w6-crowd',
      callers: bench.sized(10_000, 2000),
      rounds: bench.sized(5, 3),
      // A round of the others takes up to a minute, and their numbers differ from ours by factors.
      peersOnce: true,
      cap: bench.sized(60_000, 5000),
      // At that rate they would need more than six times the cap.
      giveUp: bench.giveUp ? { after: bench.sized(10_000, 2000), below: 0.025 } : undefined,
      more: [{ key: 'rss', title: 'RSS MB' }],
    }),
  );
}
