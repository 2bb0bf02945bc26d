import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** How a server's program is launched. */
export type Launch = { kind: 'local'; command: string } | { kind: 'docker'; image: string };

/** The servers that `scripts/services.mjs` knows. */
export type Service = 'redis-server' | 'postgres' | 'mariadbd' | 'etcd' | 'zookeeper' | 'pgbouncer' | 'promtool' | 'chromium';

/**
 * How to launch this server. jest's global setup has found it already; a script that runs by itself looks now.
 * @throws what to install, where it is missing; and for a suite of a tier that starts what scripts/services.mjs does not list for it
 */
export async function howToLaunch(service: Service): Promise<Launch> {
  const variable = variableOf(service);
  if (!process.env[variable] && process.env.TEST_SUITES)
    throw new Error(`No suite of this run is known to start ${service}: see ofSuites of scripts/services.mjs`);
  process.env[variable] ??= await find(service);
  const found = JSON.parse(process.env[variable]) as Launch | { kind: 'missing'; message: string };
  if (found.kind === 'missing') throw new Error(found.message);
  return found;
}

/** The program of this server, for those that run on this machine only. */
export async function programOf(service: Service): Promise<string> {
  const launch = await howToLaunch(service);
  if (launch.kind === 'docker') throw new Error(`${service} must be installed on this machine: there is no container for it`);
  return launch.command;
}

/** `TEST_REDIS_SERVER`, `TEST_POSTGRES`, … */
function variableOf(service: Service): string {
  return `TEST_${service.toUpperCase().replaceAll('-', '_')}`;
}

async function find(service: Service): Promise<string> {
  const script = `import('./scripts/services.mjs').then((s) => console.log(JSON.stringify(s.ensureServices(['${service}'])['${service}'])))`;
  const { stdout } = await run(process.execPath, ['-e', script]);
  return stdout;
}
