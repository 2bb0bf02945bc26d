// Once per jest run: what the library generates, and the servers the specs launch. Nothing is skipped in silence: a spec whose server is
// missing fails with what to install.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { needsPackages } from '../../scripts/imports.mjs';
import { installPackages } from '../../scripts/packages.mjs';
import { ensureServices, servicesOf } from '../../scripts/services.mjs';
import { keepSharedServers } from './shared-servers.mjs';

export default async function globalSetup() {
  process.env.TEST_SEED ??= String(Math.floor(Math.random() * 2 ** 31));
  console.error(`TEST_SEED=${process.env.TEST_SEED}`);
  for (const script of ['embed-lua', 'embed-page'])
    execFileSync(process.execPath, [fileURLToPath(new URL(`../../scripts/${script}.mjs`, import.meta.url))], { stdio: 'inherit' });
  // Those of scripts/test.mjs; `npx jest` alone may run any.
  const suites = process.env.TEST_SUITES?.split(' ');
  const installing = !suites || suites.some(needsPackages) ? installPackages('test') : undefined;
  const needed = servicesOf(suites, process.env.TEST_STORE); // `npm test -- --store postgres`
  for (const [name, launch] of Object.entries(ensureServices(needed))) {
    process.env[`TEST_${name.toUpperCase().replaceAll('-', '_')}`] = JSON.stringify(launch);
  }
  [process.env.TEST_SHARED_SERVERS] = await Promise.all([process.env.TEST_SHARED_SERVERS ?? keepSharedServers(), installing]);
}
