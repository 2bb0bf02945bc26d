import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { now } from '../history/clock.js';

const WIDTH = 16;

/**
 * A number that nothing guards but the lock. It is a file and not a key at a server: a write to a server may arrive long after the check before it,
 * when the lease has rightly ended. A write to a file is done when the call returns, so the caller can tell that its lease was valid at that time.
 */
export class UnguardedCounter {
  private readonly fd: number;
  private readonly bytes = Buffer.alloc(WIDTH);

  constructor(folder: string, key: string) {
    this.fd = openSync(join(folder, `${encodeURIComponent(key)}.counter`), constants.O_RDWR | constants.O_CREAT);
  }

  read(): number {
    const length = readSync(this.fd, this.bytes, 0, WIDTH, 0);
    return length === 0 ? 0 : Number(this.bytes.toString('latin1', 0, length));
  }

  /** Writes if the lease is valid: check and write happen in one turn of the event loop. `undefined`: it was not, and nothing is written. */
  writeIfValid(value: number, remaining: () => number): { checked: number; remaining: number; done: number } | undefined {
    const checked = now();
    const left = remaining();
    if (left <= 0) return undefined;
    writeSync(this.fd, String(value).padStart(WIDTH), 0);
    return { checked, remaining: left, done: now() };
  }

  close(): void {
    closeSync(this.fd);
  }
}
