// Once per jest run: what the library generates, and the servers the specs launch. No server, no run: nothing is skipped in silence.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ensureService } from '../../scripts/services.mjs';

export default async function globalSetup() {
  execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/embed-lua.mjs', import.meta.url))], { stdio: 'inherit' });
  process.env.TEST_REDIS_SERVER = JSON.stringify(await ensureService('redis-server'));
}
