// Once per jest run: what the library generates, and the servers the specs launch. Nothing is skipped in silence: a spec whose server is
// missing fails with what to install.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../../scripts/packages.mjs';
import { ensureServices, serversOf } from '../../scripts/services.mjs';
import { keepSharedServers } from './shared-servers.mjs';

/** Programs that some suites only need. */
const OF_SUITES = { chromium: /\.page\.spec\.ts/, zookeeper: /stores\/zookeeper/, promtool: /\/alerts\.spec\.ts/ };

/** Suites that need the packages of test/package.json. */
const WITH_PACKAGES = /^$|test\/(integrations|fence-guard|readme|nest|dashboard)\/|stores\/postgres\/clients/;

export default async function globalSetup() {
  process.env.TEST_SEED ??= String(Math.floor(Math.random() * 2 ** 31));
  console.error(`TEST_SEED=${process.env.TEST_SEED}`);
  for (const script of ['embed-lua', 'embed-page'])
    execFileSync(process.execPath, [fileURLToPath(new URL(`../../scripts/${script}.mjs`, import.meta.url))], { stdio: 'inherit' });
  const { TEST_SUITES: suites = '' } = process.env;
  const installing = WITH_PACKAGES.test(suites) ? installPackages('test') : undefined;
  const store = process.env.TEST_STORE; // `npm test -- --store postgres`
  const needed = store ? serversOf[store] : [...new Set(Object.values(serversOf).flat())];
  const special = Object.keys(OF_SUITES).filter((name) => OF_SUITES[name].test(suites));
  for (const [name, launch] of Object.entries(ensureServices([...needed, ...special]))) {
    process.env[`TEST_${name.toUpperCase().replaceAll('-', '_')}`] = JSON.stringify(launch);
  }
  [process.env.TEST_SHARED_SERVERS] = await Promise.all([process.env.TEST_SHARED_SERVERS ?? keepSharedServers(), installing]);
}
