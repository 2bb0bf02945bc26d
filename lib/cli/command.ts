import type { ParseArgsConfig } from 'node:util';
import type { Locks } from '../locks.js';
import { usage } from './failure.js';
import type { Output } from './output.js';

/** The part of its process that the command line uses. */
export type Io = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'cwd' | 'once'>;

/** The input and the means of one command. */
export interface Session {
  readonly io: Io;
  readonly flags: Flags;
  /** The arguments besides flags. */
  readonly words: readonly string[];
  /** The arguments after `--`. */
  readonly rest: readonly string[];
  readonly out: Output;
  /** Aborts on Ctrl-C and other signals that end a program. */
  readonly signal: AbortSignal;
  /** Opens the store. It is closed when the command ends. */
  readonly locks: () => Promise<Locks>;
}

export interface Command {
  /** The arguments besides flags, such as `<key>`. */
  readonly words: readonly string[];
  readonly summary: string;
  /** With their explanations. */
  readonly flags: Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly help: string }>>;
  /** Resolves to the exit code. */
  run(session: Session): Promise<number>;
}

export type Options = NonNullable<ParseArgsConfig['options']>;

/** The flags of a command line, as they were given. */
export class Flags {
  constructor(private readonly values: Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>) {}

  has(name: string): boolean {
    return this.values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.values[name];
    return typeof value === 'string' ? value : undefined;
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined || choices.includes(text as T)) return text as T | undefined;
    throw usage(`--${name} is one of ${choices.join(', ')}, not "${text}".`);
  }

  integer(name: string, least = 0): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
      throw usage(`--${name} is a whole number from ${least} on, not "${text}".`);
    }
    return value;
  }

  /** Milliseconds, of `500ms`, `5s`, `10m`, `2h`, `1d` or 0: who writes another number without a unit may mean seconds. */
  duration(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text === '0' ? '0ms' : text) ?? [];
    if (number === undefined) throw usage(`--${name} is a time with its unit, such as 500ms, 5s, 10m or 2h, not "${text}".`);
    return Math.round(Number(number) * UNITS[unit as keyof typeof UNITS]);
  }
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
