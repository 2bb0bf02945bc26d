import { eventually } from '../support/eventually.js';
import { guardedFolder, startGuarded } from '../support/guarded-process.js';

/** A process of the sample app, or of the demo that builds on it. */
export interface App {
  readonly pid: number;
  readonly running: boolean;
  /** Resolves with the shell's exit status (128 + n after signal n) when it is gone. */
  readonly exited: Promise<number>;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM; resolves with the exit status. */
  close(): Promise<number>;
  /** SIGKILL, also to one that is stopped; resolves when it is gone. */
  kill(): Promise<void>;
  log(): string;
}

/** Starts a program that `npm run build:demo` has compiled. It ends with this process, however this one ends. Resolves when its log matches `isOpen`. */
async function openApp(main: string, env: Record<string, string | number>, isOpen: RegExp): Promise<App> {
  const texts = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
  const guarded = await startGuarded({
    command: process.execPath,
    args: [`.cache/demo/${main}`],
    folder: guardedFolder('app'),
    env: { NODE_ENV: 'production', NO_COLOR: '1', ...texts },
  });
  let log: string | undefined;
  const text = (): string => log ?? guarded.log();
  const exited = guarded.exited.then(async (status) => {
    log = guarded.log();
    await guarded.end();
    return status;
  });
  exited.catch(() => undefined);
  await eventually(() => isOpen.test(text()) || !guarded.running);
  if (!isOpen.test(text())) throw new Error(`${main} ended before it was open (status ${await exited}):\n${log}`);
  return {
    pid: guarded.pid,
    exited,
    get running() {
      return guarded.running;
    },
    signal: (signal) => guarded.signal(signal),
    close() {
      guarded.signal('SIGTERM');
      const wait = setInterval(() => undefined, 60_000); // a guarded process does not keep a script running that waits for it
      return exited.finally(() => clearInterval(wait));
    },
    async kill() {
      await guarded.kill();
      await exited;
    },
    log: text,
  };
}

/** What the shop answers: a receipt, a shelf, or an error. */
export interface Answer {
  sku: string;
  sold: boolean;
  left: number;
  message: unknown;
}

export interface Shop extends App {
  readonly url: string;
  post(path: string, body?: object): Promise<{ status: number; body: Answer }>;
  put(path: string, body: object): Promise<{ status: number; body: Answer }>;
  get<T = Answer>(path: string): Promise<T>;
}

/** Starts the shop of the demo, or the sample app itself, on a free port. */
export async function openShop(env: Record<string, string | number>, main = 'scripts/demo/shop/main.js'): Promise<Shop> {
  const address = /open at (\S+)/;
  const app = await openApp(main, { PORT: '0', ...env }, address);
  const url = address.exec(app.log())![1]!;

  async function send(method: string, path: string, body?: object) {
    const headers = body && { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    // What arrives while the server is closing is refused by Nest itself, in plain text.
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: (isJson ? await response.json() : { message: await response.text() }) as Answer };
  }

  return Object.assign(app, {
    url,
    post: (path: string, body?: object) => send('POST', path, body),
    put: (path: string, body: object) => send('PUT', path, body),
    get: async <T>(path: string) => (await send('GET', path)).body as T,
  });
}
