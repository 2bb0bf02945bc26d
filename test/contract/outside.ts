import { AsyncLocalStorage } from 'node:async_hooks';

/** Runs it in no call chain, so that it holds nothing: as somebody else would, also where all share one store. */
export const outside = AsyncLocalStorage.snapshot() as <T>(work: () => T) => T;
