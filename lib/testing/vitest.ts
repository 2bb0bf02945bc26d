import type { LockMatchers } from './lock-matchers.js';

export { lockMatchers } from './lock-matchers.js';

/* eslint-disable @typescript-eslint/no-empty-object-type, @typescript-eslint/no-explicit-any -- what Vitest asks for */
/** @ts-ignore A program that uses this entry has Vitest. */ // eslint-disable-line @typescript-eslint/ban-ts-comment
declare module 'vitest' {
  interface Matchers<T = any> extends LockMatchers<T> {}
}
