import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs the work outside of every call chain. A timer or a socket keeps the chain in which it was made, with all that hangs on it; those that
 * outlive the call that happens to make them are made here.
 */
export const outside: <T>(work: () => T) => T = AsyncLocalStorage.snapshot();
