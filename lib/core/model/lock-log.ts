import { now } from '../util/clock.js';

/** The codes of all lines at level warn and error: docs/troubleshooting.md says of each what to do. */
export const WARNINGS = {
  NDL_LEASE_LOST: 'warn',
  NDL_SLOW_WAIT: 'warn',
  NDL_EVENT_LOOP: 'warn',
  NDL_STORE_AWAY: 'warn',
  NDL_STORE_BACK: 'warn',
  NDL_STORE_REFUSES: 'warn',
  NDL_SERVER_VERSION: 'warn',
  NDL_SERVER_SETTING: 'warn',
  NDL_ONE_PROCESS: 'warn',
  NDL_POLLING: 'warn',
  NDL_QUORUM_MEMBER: 'warn',
  NDL_QUORUM_EVEN: 'warn',
  NDL_PREPARED: 'warn',
  NDL_OPEN_TRANSACTION: 'warn',
  NDL_STORE_OTHER: 'warn',
  NDL_ASKED_BACK: 'warn',
  NDL_TAKEN: 'warn',
  NDL_HELD_BY_HAND: 'warn',
  NDL_NO_OPERATOR: 'warn',
  NDL_NOT_RELEASED: 'warn',
  NDL_RELEASED_EARLY: 'warn',
  NDL_LATE_TERM: 'warn',
  NDL_CAMPAIGN: 'warn',
  NDL_STANDBY_START: 'warn',
  NDL_STANDBY_END: 'error',
  NDL_LISTENER: 'error',
  NDL_TELEMETRY: 'warn',
  NDL_KEY_PARTS: 'warn',
  NDL_KEY_SETTINGS: 'warn',
  NDL_KEY_OF_REQUEST: 'warn',
  NDL_KEY_TEXT: 'warn',
  NDL_LONG_LEASE: 'warn',
  NDL_SHORT_LEASE: 'warn',
  NDL_UNLOCKED_OVERRIDE: 'warn',
  NDL_CRON_WAITS: 'warn',
  NDL_SHUTDOWN_HOOKS: 'warn',
  NDL_REAL_TIME: 'warn',
} as const;

/** The code at the end of a warning: a heading of the page Troubleshooting, which says what to do. */
export type WarningCode = keyof typeof WARNINGS;

/** The subject of a line of the log, as far as it is known. */
export interface LogDetails {
  readonly key?: string;
  readonly label?: string;
  readonly owner?: string;
  /** The fencing token. */
  readonly token?: number | null;
}

/** The engine writes messages for operators to it. Nest's `Logger` and `console` both fit. */
export interface LockLogger {
  /**
   * Whether the methods get {@link LogDetails} as second argument. Default false: the loggers of Nest 10 and 11 would print them as a second message.
   */
  readonly wantsDetails?: boolean;
  /** Lost leases, long waits, a store that is away, a blocked event loop, likely mistakes. */
  warn(message: string, details?: LogDetails): void;
  /** Errors that no caller receives. */
  error(message: string, details?: LogDetails): void;
  /** One line for each store when a Nest app starts. */
  log?(message: string, details?: LogDetails): void;
  /** Details that a reader of logs needs only to analyse a problem. */
  debug?(message: string, details?: LogDetails): void;
}

/** The subject of a line, and how often it may be written. */
export interface LogContext extends LogDetails {
  /** One line with this value is written in a minute. */
  readonly once?: unknown;
}

type Level = 'warn' | 'error' | 'log' | 'debug';
type Message = string | (() => string);

const MINUTE = 60_000;
/** Lines that are counted at the same time. A program may make any number of labels. */
const MOST_COUNTED = 1000;
const NONE: LogContext = {};

export const CONSOLE: LockLogger = { warn: (message) => console.warn(message), error: (message) => console.error(message) };

/** The log of one {@link Locks}. A logger that throws, or a message that cannot be made, breaks no lock. */
export class LockLog {
  private readonly lines = new Map<unknown, { until: number; hidden: number }>();

  constructor(
    private readonly logger: LockLogger | false,
    private readonly silence: readonly WarningCode[] = [],
  ) {}

  warn(code: WarningCode, message: Message, context = NONE): void {
    if (!this.silence.includes(code)) this.write(WARNINGS[code], message, context, ` [${code}]`);
  }

  /** @param code ends the first line. A stack may follow. */
  write(level: 'log' | 'debug', message: Message, context?: LogContext): void;
  write(level: Level, message: Message, context: LogContext, code: string): void;
  write(level: Level, message: Message, context = NONE, code = ''): void {
    const { logger } = this;
    if (!logger || !logger[level]) return;
    const hidden = this.hiddenBefore(context.once);
    if (hidden < 0) return;
    try {
      const text = typeof message === 'string' ? message : message();
      const counted = hidden === 0 ? text : `${text} (and ${hidden} more such lines before)`;
      const line = counted.replace(/$/m, code);
      const { key, label, owner, token } = context;
      if (logger.wantsDetails) logger[level]?.(line, { key, label, owner, token });
      else logger[level]?.(line);
    } catch {
      // There is no other place to report it to.
    }
  }

  /** How many lines of this kind were not written since the last one; −1: this one must not be written, either. */
  private hiddenBefore(once: unknown): number {
    if (once === undefined) return 0;
    const { lines } = this;
    const time = now();
    const line = lines.get(once);
    if (line && time < line.until) {
      line.hidden++;
      return -1;
    }
    if (!line && lines.size >= MOST_COUNTED) for (const [each, { until }] of lines) if (until <= time) lines.delete(each);
    if (!line && lines.size >= MOST_COUNTED) return -1;
    lines.set(once, { until: time + MINUTE, hidden: 0 });
    return line?.hidden ?? 0;
  }
}
