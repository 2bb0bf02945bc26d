import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import type { Locks } from '../locks.js';
import type { NdlError } from '../operate/ndl-document.js';
import { isSettledWithin } from '../core/util/clock.js';
import { Flags, type Command, type Io, type Session } from './command.js';
import { doctor } from './doctor.js';
import { EXIT, failureOf, usage } from './failure.js';
import { graph } from './graph.js';
import { hold } from './hold.js';
import { ls } from './ls.js';
import { openStore, STORE_OPTIONS, URLS } from './open-store.js';
import { Output, printableLines } from './output.js';
import { leader, release } from './release.js';
import { run } from './run.js';
import { show } from './show.js';
import { ui } from './ui.js';
import { watch } from './watch.js';

export const COMMANDS: Readonly<Record<string, Command>> = { ls, show, watch, graph, ui, release, hold, leader, run, doctor };

/** Milliseconds in which the client of a store that does not answer may end. */
const CLOSING = 300;
/** Commands that print the log lines of the store as they come. */
const LASTING = ['run', 'watch', 'ui'];

const HELP = `Locks of nestjs-distributed-lock.

  ndl <command> [options]

${Object.entries(COMMANDS)
  .map(([name, { words, summary }]) => `  ${[name, ...words].join(' ').padEnd(22)}  ${summary}`)
  .join('\n')}

The store is that of --config <file> or of a nestjs-distributed-lock.config.js nearby, else of --url, else of REDIS_URL, else
redis://localhost:6379. A URL begins with ${URLS}. Besides: --store <name of
one in the config file>, --table <name of a database's table>, --key-prefix <that of ioredis, or the prefix of etcd>, --namespace <text>,
--timeout <time of one request, 5s>, --json, --wide, --version, --help (of a command: its options). Times are such as 500ms, 5s, 10m, 2h, 1d.
A key that begins with - comes last, after --.
`;

/** The command line: resolves to the exit code. */
export async function ndl(args: readonly string[], io: Io): Promise<number> {
  const options = args.slice(0, [...args, '--'].indexOf('--'));
  const isJson = options.includes('--json');
  const out = new Output(isJson, options.includes('--wide'), io);
  const interrupted = new AbortController();
  let locks: Promise<Locks> | undefined;
  let late: Locks | undefined;
  const notes: string[] = [];
  try {
    const [name = ''] = args;
    if (name === '') throw usage(HELP.trimEnd());
    if (name === '--help' || name === '-h' || name === 'help') {
      io.stdout.write(HELP);
      return EXIT.ok;
    }
    if (name === '--version') {
      const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };
      out.line(version);
      return EXIT.ok;
    }
    const command = Object.hasOwn(COMMANDS, name) ? (COMMANDS[name] as Command) : undefined;
    if (!command) throw usage(`There is no command "${name}", but ${Object.keys(COMMANDS).join(', ')}.`);
    const { flags, words, rest } = parse(name, command, args.slice(1));
    if (flags.has('help')) {
      io.stdout.write(helpOf(name, command));
      return EXIT.ok;
    }
    // The second one ends the program at once. `run` passes all of them on to its command.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) io.once(signal, () => interrupted.abort(signal));
    const open = async (): Promise<Locks> => {
      const [{ Locks }, { store, namespace }] = await Promise.all([import('../locks.js'), openStore(flags, io, (line) => out.note(line))]);
      // A command that does not wait ends with the error of the store: a line of the log before it would say the same.
      const note = (line: string): void => (LASTING.includes(name) ? out.note(line) : void notes.push(line));
      out.namespace = namespace;
      const logger = { warn: note, error: note };
      const opened = new Locks(store, { namespace, app: 'ndl', logger, shutdownTimeout: 0 });
      // Without it, each request of a command would wait for a store that does not answer, one after the other.
      const { error } = LASTING.includes(name) ? {} : await opened.health();
      if (!error?.transient) return opened;
      late = opened;
      throw error;
    };
    const { signal } = interrupted;
    const code = await command.run({ io, flags, words, rest, out, signal, locks: () => (locks ??= open()) });
    for (const line of notes) out.note(line);
    return code;
  } catch (error) {
    if (interrupted.signal.aborted) return 128 + constants.signals[interrupted.signal.reason as NodeJS.Signals];
    const { message, code, exitCode } = failureOf(error);
    io.stderr.write(isJson ? `${JSON.stringify({ error: { code, message } } satisfies NdlError)}\n` : `${printableLines(message)}\n`);
    return exitCode;
  } finally {
    // A store that does not answer is not waited for again.
    const opened = late ?? (await locks?.catch(() => undefined));
    const closed = opened?.close().catch(() => undefined);
    if (closed) await isSettledWithin(late ? CLOSING : Infinity, closed);
  }
}

function parse(name: string, command: Command, args: readonly string[]): Pick<Session, 'flags' | 'words' | 'rest'> {
  const own = command.words.filter((word) => !word.startsWith('--'));
  // Where no command comes after it, `--` comes before a key that begins with a dash.
  const end = own.length < command.words.length ? args.indexOf('--') : -1;
  const [given, rest] = end < 0 ? [args, []] : [args.slice(0, end), args.slice(end + 1)];
  const common = { ...STORE_OPTIONS, json: { type: 'boolean' }, wide: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const { values, positionals } = parseArgs({ args: given, options: { ...common, ...command.flags }, allowPositionals: true });
    const flags = new Flags(values);
    const needed = own.filter((word) => word.startsWith('<')).length;
    if (!flags.has('help') && (positionals.length < needed || positionals.length > own.length)) {
      throw usage(`Usage: ndl ${[name, ...command.words].join(' ')}`);
    }
    return { flags, words: positionals, rest };
  } catch (error) {
    if (!(error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) throw error;
    throw usage(`${(error as Error).message.split('.')[0]}. See ndl ${name} --help.`);
  }
}

function helpOf(name: string, { words, summary, flags }: Command): string {
  const lines = Object.entries(flags).map(
    ([flag, { type, help }]) => `  ${`--${flag}${type === 'string' ? ' …' : ''}`.padEnd(24)}  ${help}`,
  );
  return `ndl ${[name, ...words].join(' ')}\n${summary}\n\n${lines.join('\n')}${lines.length > 0 ? '\n\n' : ''}The options of all commands: ndl --help\n`;
}
