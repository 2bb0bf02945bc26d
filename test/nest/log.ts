import type { LockLogger } from 'nestjs-distributed-lock';

/** Keeps what an app says. */
export class Log implements LockLogger {
  readonly warnings: string[] = [];
  readonly details: string[] = [];
  warn = (message: string) => void this.warnings.push(message);
  error = (message: string) => void this.warnings.push(message);
  debug = (message: string) => void this.details.push(message);
}
