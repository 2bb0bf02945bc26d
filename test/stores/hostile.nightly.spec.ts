import { hostilePlay } from './hostile.play.js';

hostilePlay(100_000);
