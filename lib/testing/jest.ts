import type { LockMatchers } from './lock-matchers.js';

export { lockMatchers } from './lock-matchers.js';

/* eslint-disable @typescript-eslint/no-namespace, @typescript-eslint/no-empty-object-type -- what Jest asks for */
declare global {
  namespace jest {
    // eslint-disable-next-line @typescript-eslint/no-unused-vars -- all declarations of it must have the same parameters
    interface Matchers<R, T = {}> extends LockMatchers<R> {}
  }
}
