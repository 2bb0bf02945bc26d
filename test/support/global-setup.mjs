// Once per jest run: what the library generates, and the servers the specs launch. Nothing is skipped in silence: without redis-server there
// is no run, and a spec that needs another server which is missing fails with what to install.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureService, serversOf } from '../../scripts/services.mjs';
import { keepSharedServers } from './shared-servers.mjs';

export default async function globalSetup() {
  execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/embed-lua.mjs', import.meta.url))], { stdio: 'inherit' });
  const store = process.env.TEST_STORE; // `npm test -- --store postgres`
  const needed = store ? serversOf[store] : Object.values(serversOf).flat();
  for (const name of needed) process.env[`TEST_${name.toUpperCase().replaceAll('-', '_')}`] = JSON.stringify(await find(name));
  process.env.TEST_SHARED_SERVERS ??= await keepSharedServers();
}

async function find(name) {
  try {
    return await ensureService(name);
  } catch (error) {
    if (name === 'redis-server') throw error;
    return { kind: 'missing', message: error.message };
  }
}
