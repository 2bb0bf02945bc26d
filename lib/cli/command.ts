import type { Locks } from '../locks.js';
import type { Flags, Options } from './flags.js';
import type { Output } from './output.js';

/** What the command line uses of its process. */
export type Io = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'cwd' | 'once'>;

/** What a command works with. */
export interface Session {
  readonly io: Io;
  readonly flags: Flags;
  /** What is given besides flags. */
  readonly words: readonly string[];
  /** What follows `--`. */
  readonly rest: readonly string[];
  readonly out: Output;
  /** Aborts on Ctrl-C and other signals that end a program. */
  readonly signal: AbortSignal;
  /** Opens the store. It is closed when the command ends. `visible`: from now on other processes can ask this one. */
  readonly locks: (options?: { readonly visible?: boolean }) => Promise<Locks>;
}

export interface Command {
  /** What is given besides flags, such as `<key>`. */
  readonly words: readonly string[];
  readonly summary: string;
  /** With their explanations. */
  readonly flags: Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly help: string }>>;
  /** Resolves to the exit code. */
  run(session: Session): Promise<number>;
}

export function optionsOf({ flags }: Command): Options {
  return Object.fromEntries(Object.entries(flags).map(([name, { type }]) => [name, { type }]));
}
