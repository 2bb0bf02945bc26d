import { latchPlay } from './latch.play.js';
import { mutexPlay } from './mutex.play.js';
import { useRedis } from './setting.js';
import { sharingPlay } from './sharing.play.js';

const setting = useRedis();
for (const play of [mutexPlay, sharingPlay, latchPlay]) play(setting, 1_000);
