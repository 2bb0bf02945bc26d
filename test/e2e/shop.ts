import { eventually } from '../support/eventually.js';
import { guardedFolder, startGuarded } from '../support/guarded-process.js';

/** What the shop answers: a receipt, a shelf, or an error. */
export interface Answer {
  sku: string;
  sold: boolean;
  left: number;
  message: unknown;
}

export interface Shop {
  readonly url: string;
  post(path: string, body?: object): Promise<{ status: number; body: Answer }>;
  put(path: string, body: object): Promise<{ status: number; body: Answer }>;
  get<T = Answer>(path: string): Promise<T>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves with the exit status when it is gone. */
  readonly exited: Promise<number>;
  /** SIGTERM, or SIGKILL if that takes too long; resolves with the exit status. */
  close(): Promise<number>;
  kill(): Promise<void>;
  log(): string;
}

/**
 * Starts the built sample-app as a process on a free port, which ends with this process, however this one ends.
 * @param env its configuration; without `REDIS_URL` its stock is in memory
 */
export async function openShop(env: Record<string, string | number> = {}): Promise<Shop> {
  let port: number | undefined;
  const guarded = await startGuarded({
    command: process.execPath,
    args: ['sample-app/dist/main.js'],
    folder: guardedFolder('shop'),
    env: { REDIS_URL: '', REDIS_CLUSTER: '', DATABASE_URL: '', PORT: '0', NODE_ENV: 'production', ...asText(env) },
    onMessage: (message) => ({ port } = message as { port: number }),
  });
  let log: string | undefined;
  const exited = guarded.exited.then(async (status) => {
    log = guarded.log();
    await guarded.end();
    return status;
  });
  exited.catch(() => undefined);
  await eventually(() => port !== undefined || !guarded.running, { within: 20_000 });
  if (port === undefined) throw new Error(`The shop did not open (status ${await exited}):\n${log}`);
  const url = `http://127.0.0.1:${port}`;

  async function send(method: string, path: string, body?: object) {
    const headers = body && { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    // What arrives while the server is closing is refused by Nest itself, in plain text.
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: (isJson ? await response.json() : { message: await response.text() }) as Answer };
  }

  return {
    url,
    exited,
    post: (path, body) => send('POST', path, body),
    put: (path, body) => send('PUT', path, body),
    get: async <T>(path: string) => (await send('GET', path)).body as T,
    signal: (signal) => guarded.signal(signal),
    async close() {
      guarded.signal('SIGTERM');
      const impatience = setTimeout(() => guarded.signal('SIGKILL'), 15_000);
      return exited.finally(() => clearTimeout(impatience));
    },
    async kill() {
      guarded.signal('SIGKILL');
      await exited;
    },
    log: () => log ?? guarded.log(),
  };
}

function asText(env: Record<string, string | number>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
}
