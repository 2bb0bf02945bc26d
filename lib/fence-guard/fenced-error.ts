import { LockLostError } from '../core/model/errors.js';

/** Why a guard refused: a later holder of the key has been here. It is the `cause` of the `LockLostError`. */
export class FencedError extends Error {
  override readonly name = 'FencedError';

  constructor(
    message: string,
    /** The fencing token of the lease that was refused. */
    readonly token: number,
    /** The larger one that was seen, in decimal digits; `undefined` where it could not be read. */
    readonly seen: string | undefined,
  ) {
    super(message);
  }
}

/** The error of a lease whose token is smaller than one that was seen. */
export function fencedOff(message: string, key: string, token: number, seen: string | undefined): LockLostError {
  const cause = new FencedError(`Token ${token} is older than ${seen ?? 'one that was seen'}.`, token, seen);
  return new LockLostError(message, { key, cause });
}
