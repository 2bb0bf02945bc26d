// The scripts against models of them: many random series of steps. models.nightly.spec.ts has more of them.
import { latchPlay } from './latch.play.js';
import { mutexPlay } from './mutex.play.js';
import { useRedis } from './setting.js';
import { sharingPlay } from './sharing.play.js';

const setting = useRedis();
for (const play of [mutexPlay, sharingPlay, latchPlay]) play(setting, 100);
