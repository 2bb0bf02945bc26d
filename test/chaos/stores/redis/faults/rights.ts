import { PATTERNS } from '../../../worker/keys.js';
import { wide, type Fault, type Strike } from '../../../faults/fault.js';
import { redisOf } from '../stage.js';

/** The workers' user may not do something for a while. */
export const rightsFaults: Fault[] = [
  rights('channels forbidden', () => ['resetchannels'], ['allchannels']),
  rights('PUBLISH forbidden', () => ['-publish'], ['+publish']),
  rights('one key forbidden', ({ extent }) => ['resetkeys', ...allBut(Math.floor(extent * PATTERNS.length))], ['resetkeys', 'allkeys']),
];

function rights(name: string, take: (strike: Strike) => string[], give: string[]): Fault {
  return wide('rights', name, [200, 3_000], async (scene, strike) => {
    const stage = redisOf(scene);
    await stage.onEach('ACL', 'SETUSER', 'worker', ...take(strike));
    await scene.pause(strike.duration);
    await stage.onEach('ACL', 'SETUSER', 'worker', ...give);
  });
}

function allBut(index: number): string[] {
  return PATTERNS.filter((_, i) => i !== index).map((pattern) => `~${pattern}`);
}
