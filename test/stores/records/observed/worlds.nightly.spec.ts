// More worlds than in worlds.spec.ts.
import { worldsHold } from './worlds.js';

worldsHold(40);
