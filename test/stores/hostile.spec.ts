// hostile.nightly.spec.ts has more of them.
import { hostilePlay } from './hostile.play.js';

hostilePlay(2_000);
