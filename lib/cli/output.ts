import { styleText } from 'node:util';
import { duration } from '../core/util/clock.js';
import type { Documents } from '../operate/ndl-document.js';
import type { Io } from './command.js';
import { withoutPasswords } from './failure.js';

/** The output of a command: text for people, or one document with `--json`. */
export class Output {
  /** The namespace of the store that is open. */
  namespace = '';

  constructor(
    readonly isJson: boolean,
    readonly isWide: boolean,
    private readonly io: Pick<Io, 'stdout' | 'stderr' | 'env'>,
  ) {}

  /** One line. @param alarm is put before it in red. */
  line(text = '', alarm = ''): void {
    if (!this.isJson) this.io.stdout.write(`${alarm && this.styled('red', alarm)}${printable(text)}\n`);
  }

  /** One document, or a line of `watch`. */
  json<Command extends keyof Documents>(_command: Command, document: Documents[Command]): void {
    // JSON has no `Infinity`: `null` stands for no limit, and for the whole key.
    const jsonOf = (_name: string, value: unknown): unknown => (value === Infinity ? null : value);
    if (this.isJson) this.io.stdout.write(`${JSON.stringify({ v: 1, ...document }, jsonOf)}\n`);
  }

  /** On stderr, in both cases. */
  note(text: string): void {
    this.io.stderr.write(`${printableLines(withoutPasswords(text))}\n`);
  }

  /** @param none the line for no rows; default: the head alone. */
  table(head: readonly string[], rows: readonly (readonly string[])[], none?: string): void {
    if (none !== undefined && rows.length === 0) return this.line(none);
    const cells = rows.map((row) => row.map((cell, column) => printable(column === 0 && !this.isWide ? cut(cell) : cell)));
    const widths = head.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
    const padded = (row: readonly string[]): string => row.map((cell, column) => cell.padEnd(widths[column] as number)).join('  ');
    if (!this.isJson) this.io.stdout.write(`${this.styled('bold', padded(head).trimEnd())}\n`);
    for (const row of cells) this.line(padded(row).trimEnd());
  }

  /** A key as it is typed after a command with the same flags: without the namespace, for a shell to read as one word. */
  key(key: string): string {
    return shellQuoted(key.startsWith(this.namespace) ? key.slice(this.namespace.length) : key);
  }

  private styled(style: 'bold' | 'red', text: string): string {
    const { stdout, env } = this.io;
    return stdout.isTTY && !env.NO_COLOR && env.TERM !== 'dumb' ? styleText(style, text) : text;
  }
}

const MOST_OF_KEY = 48;

/** A long key, without its middle. */
function cut(text: string): string {
  if (text.length <= MOST_OF_KEY) return text;
  const half = Math.floor((MOST_OF_KEY - 1) / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

/**
 * The text as one line without styles: keys, labels and reasons come from other processes, which must not write lines of their own, move the cursor of who
 * reads them, or turn their direction.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Several lines, each as {@link printable} makes it: for messages of this program. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** `41 s`, `3 min`; `–`: unknown. */
export function age(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return '–';
  return duration(Math.max(0, milliseconds));
}

/** For a shell to read as one word. */
export function shellQuoted(text: string): string {
  if (printable(text) !== text) return `$'${printable(text.replaceAll(/[\\']/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
