import { closeSync, openSync, writeSync } from 'node:fs';
import { now } from './clock.js';
import type { Fact } from './entry.js';

/** One author's history: JSON lines, written at once, so that a SIGKILL loses none that was made. */
export class HistoryWriter {
  private readonly fd: number;

  constructor(
    file: string,
    private readonly author: string,
  ) {
    this.fd = openSync(file, 'a');
  }

  /** @param t when it happened; default: now */
  write(fact: Fact, t = now()): void {
    writeSync(this.fd, `${JSON.stringify({ t, w: this.author, ...fact })}\n`);
  }

  close(): void {
    closeSync(this.fd);
  }
}
