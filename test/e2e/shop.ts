import { eventually } from '../support/eventually.js';
import { guardedFolder, startGuarded } from '../support/guarded-process.js';

/** What the shop answers: a receipt, a shelf, or an error. */
export interface Answer {
  sku: string;
  sold: boolean;
  left: number;
  message: unknown;
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

/**
 * Starts the shop of the demo, or the sample app itself, as `npm run build:demo` has compiled it, on a free port. It ends with this process, however this one
 * ends. Resolves when its log says that it is open.
 */
export async function openShop(env: Record<string, string | number>, main = 'scripts/demo/shop/main.js') {
  const texts = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
  const guarded = await startGuarded({
    command: process.execPath,
    args: [`.cache/demo/${main}`],
    folder: guardedFolder('app'),
    env: { NODE_ENV: 'production', NO_COLOR: '1', PORT: '0', ...texts },
  });
  let ended: string | undefined;
  const log = () => ended ?? guarded.log();
  const exited = guarded.exited.then(async (status) => {
    ended = guarded.log();
    await guarded.end();
    return status;
  });
  exited.catch(() => undefined);
  const addressIn = (text: string) => /open at (\S+)/.exec(text)?.[1];
  await eventually(() => addressIn(log()) !== undefined || !guarded.running);
  const url = addressIn(log());
  if (url === undefined) throw new Error(`${main} ended before it was open (status ${await exited}):\n${ended}`);

  async function send(method: string, path: string, body?: object) {
    const headers = body && { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
    // What arrives while the server is closing is refused by Nest itself, in plain text.
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: (isJson ? await response.json() : { message: await response.text() }) as Answer };
  }

  return {
    url,
    post: (path: string, body?: object) => send('POST', path, body),
    put: (path: string, body: object) => send('PUT', path, body),
    get: async <T = Answer>(path: string) => (await send('GET', path)).body as T,
    log,
    signal: (signal: NodeJS.Signals) => guarded.signal(signal),
    /** SIGTERM; resolves with the shell's exit status (128 + n after signal n). */
    close() {
      guarded.signal('SIGTERM');
      const wait = setInterval(() => undefined, 60_000); // a guarded process does not keep a script running that waits for it
      return exited.finally(() => clearInterval(wait));
    },
    /** SIGKILL, also to one that is stopped; resolves when it is gone. */
    async kill() {
      await guarded.kill();
      await exited;
    },
  };
}
