import type { HistoryWriter } from '../history/writer.js';

/** Notes what no library may cause in a process that uses it. The process goes on, so that one error does not hide the next. */
export function noteTrouble(history: HistoryWriter): void {
  const textOf = (value: unknown): string => (value instanceof Error ? (value.stack ?? value.message) : String(value));
  process.on('unhandledRejection', (reason) => history.write({ e: 'trouble', what: 'unhandled rejection', detail: textOf(reason) }));
  process.on('uncaughtException', (error) => history.write({ e: 'trouble', what: 'uncaught exception', detail: textOf(error) }));
  process.on('warning', (warning) => history.write({ e: 'trouble', what: 'warning', detail: textOf(warning) }));
}
