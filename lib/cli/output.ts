import { styleText } from 'node:util';

/** What a command prints: text for people, or one document with `--json`. */
export class Output {
  constructor(
    readonly isJson: boolean,
    readonly isWide: boolean,
  ) {}

  line(text = ''): void {
    if (!this.isJson) process.stdout.write(`${text}\n`);
  }

  /** One document, or a line of `watch`. */
  json(document: object): void {
    if (this.isJson) process.stdout.write(`${JSON.stringify({ v: 1, ...document }, jsonOf)}\n`);
  }

  /** On stderr, in both cases. */
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    const cells = rows.map((row) => row.map((cell, column) => (column === 0 && !this.isWide ? cut(cell) : cell)));
    const widths = head.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
    const lineOf = (row: readonly string[]): string =>
      row
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd();
    this.line(bold(lineOf(head)));
    for (const row of cells) this.line(lineOf(row));
  }
}

const MOST_OF_KEY = 48;

/** A long key, without its middle. */
function cut(text: string): string {
  if (text.length <= MOST_OF_KEY) return text;
  const half = Math.floor((MOST_OF_KEY - 1) / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

function isStyled(): boolean {
  return process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
}

function bold(text: string): string {
  return isStyled() ? styleText('bold', text) : text;
}

export function red(text: string): string {
  return isStyled() ? styleText('red', text) : text;
}

/** `41 s`, `3 min`; `–`: unknown. */
export function age(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return '–';
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 1) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** JSON has no `Infinity`: `null` stands for no limit, and for the whole key. */
function jsonOf(_name: string, value: unknown): unknown {
  return value === Infinity ? null : value;
}

/** For a shell to read as one word. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
