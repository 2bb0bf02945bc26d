import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from './eventually.js';
import { guardedFolder, startGuarded, type GuardedProcess } from './guarded-process.js';

const run = promisify(execFile);

/** Database servers refuse to run as root: then they run as this user. */
export const unprivileged = process.getuid?.() === 0 ? idsOfNobody() : undefined;

function idsOfNobody() {
  const id = (which: string) => Number(execFileSync('id', [which, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** A folder that goes with the process that is guarded there, and belongs to the user it runs as. */
function databaseFolder(name: string): string {
  const folder = guardedFolder(name);
  if (unprivileged) chownSync(folder, unprivileged.uid, unprivileged.gid);
  return folder;
}

/** Runs a program of the database, as the user it runs as. */
export function runUnprivileged(command: string, args: string[], cwd: string) {
  return run(command, args, { ...unprivileged, cwd, maxBuffer: 2 ** 24 });
}

export interface Template {
  /** the server's program: each version has its own template */
  program: string;
  /** part of its name; must change when `make` does */
  recipe: string;
  /** makes the data in this folder, which exists */
  make(folder: string): Promise<void>;
}

/** Fills `data` with a copy of a new database, which is made once per machine and version. */
export async function copyTemplate({ program, recipe, make }: Template, data: string): Promise<void> {
  const { stdout: version } = await run(program, ['--version']);
  const cache = resolve('node_modules/.cache/databases');
  const template = join(
    cache,
    createHash('sha256').update(`${process.platform} ${program} ${version} ${recipe}`).digest('hex').slice(0, 16),
  );
  if (!existsSync(template)) {
    mkdirSync(cache, { recursive: true });
    const folder = databaseFolder('template');
    await make(folder);
    const aside = mkdtempSync(join(cache, 'new-'));
    await run('cp', ['-R', folder, join(aside, 'data')]);
    rmSync(folder, { recursive: true });
    try {
      renameSync(join(aside, 'data'), template);
    } catch (error) {
      if (!existsSync(template)) throw error; // another process was first
    }
    rmSync(aside, { recursive: true });
  }
  await run('cp', ['-R', template, data]);
  await own(data);
}

async function own(folder: string): Promise<void> {
  if (unprivileged) await run('chown', ['-R', `${unprivileged.uid}:${unprivileged.gid}`, folder]);
  await run('chmod', ['-R', 'u=rwX,go=', folder]);
}

/** A server of one or several processes. It ends with this one, however this one ends. */
export abstract class DatabaseServer {
  readonly folder: string;
  /** set by the constructor of each kind */
  protected args: string[] = [];
  #process: GuardedProcess | undefined;

  constructor(
    private readonly name: string,
    protected readonly program: string,
  ) {
    this.folder = databaseFolder(name);
  }

  /** Throws, or answers false, until it takes connections. */
  protected abstract ready(pid: number): unknown;

  /** of its main process */
  get pid(): number {
    if (!this.#process) throw new Error('The server is not started');
    return this.#process.pid;
  }

  log(): string {
    return this.#process?.log() ?? '';
  }

  async start(): Promise<void> {
    const { program: command, args, folder } = this;
    const process = await startGuarded({ command, args, folder, user: unprivileged, withChildren: true });
    this.#process = process;
    await eventually(() => (process.running ? this.ready(process.pid) : undefined), { every: 10 });
    if (!process.running) throw new Error(`${this.name} ended with status ${await process.exited}:\n${process.log()}`);
  }

  /** SIGKILL to all its processes, as if the machine went; nothing answers at its address then, and committed data stays. */
  async kill(): Promise<void> {
    if (!this.#process?.running) return;
    this.#process.signal('SIGSTOP'); // no more of them
    this.signalChildren('SIGKILL');
    await this.#process.kill();
  }

  /** The same data at the same address, by new processes; after a crash if it still ran. */
  async restart(): Promise<void> {
    await this.kill();
    await this.#process?.end({ keepFolder: true });
    await this.start();
  }

  /** SIGSTOP to all its processes: connections stay open, and nothing answers. */
  pause(): void {
    this.#process?.signal('SIGSTOP');
    this.signalChildren('SIGSTOP');
  }

  resume(): void {
    this.signalChildren('SIGCONT');
    this.#process?.signal('SIGCONT');
  }

  /** Ends it, paused or not, and removes its folder. Clients are the caller's to close. */
  async stop(): Promise<void> {
    await this.kill();
    if (this.#process) await this.#process.end();
    else rmSync(this.folder, { recursive: true, force: true });
  }

  private signalChildren(signal: NodeJS.Signals): void {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid='], { encoding: 'utf8' }).trim().split('\n');
    const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number));
    for (const [pid, parent] of pairs) {
      if (parent !== this.pid) continue;
      try {
        process.kill(pid!, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it ended by itself
      }
    }
  }
}
