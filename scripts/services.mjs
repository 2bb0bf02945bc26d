// Finds the real servers that the tests need, or installs them. `node scripts/services.mjs redis-server`
import { spawnSync } from 'node:child_process';
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const services = {
  'redis-server': { apt: 'redis-server', brew: 'redis', image: 'redis:7-alpine' },
};

const policyMark = 'written by nestjs-distributed-lock/scripts/services.mjs';

// Installs package $2 for command $3 without letting it start a system service: policy-rc.d ($1) tells invoke-rc.d so.
const aptInstall = `
command -v "$3" && exit # another run was first
policy=$1
trap 'exit 130' INT TERM HUP
if [ ! -e "$policy" ] || grep -q '${policyMark}' "$policy"; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\\n# ${policyMark}\\nexit 101\\n' > "$policy" && chmod 755 "$policy" || exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=120 update || echo 'apt-get update failed; trying with the package lists of before'
apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$2"
`;

/**
 * @param {keyof typeof services} name
 * @returns {Promise<{ kind: 'local', command: string, installed: boolean } | { kind: 'docker', image: string }>} how to launch it
 */
export async function ensureService(name) {
  const service = services[name];
  if (!service) throw new Error(`Unknown service '${name}'. Known: ${Object.keys(services).join(', ')}`);
  const found = findCommand(name);
  if (found) return { kind: 'local', command: found, installed: false };
  const trouble = [];
  if (canApt()) {
    const installed = installWithApt(name, service, trouble);
    if (installed) return { kind: 'local', command: installed, installed: true };
  }
  if (canDocker()) return { kind: 'docker', image: service.image };
  throw new Error(howToInstall(name, service, trouble));
}

function findCommand(name) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/bin', '/usr/local/bin', '/usr/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function canApt() {
  return process.platform === 'linux' && process.getuid?.() === 0 && findCommand('apt-get') !== undefined;
}

function canDocker() {
  return answers('docker', ['compose', 'version']) && answers('docker', ['info']);
}

function answers(command, args) {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;
}

function installWithApt(name, service, trouble) {
  // Two runs at once take turns: the first to end removes policy-rc.d, which would let the other's package start a service.
  const lock = join(tmpdir(), 'nestjs-distributed-lock.apt');
  const script = ['sh', '-c', aptInstall, 'sh', '/usr/sbin/policy-rc.d', service.apt, name];
  const run = spawnSync('flock', ['-w', '600', lock, ...script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const installed = findCommand(name);
  if (!installed) trouble.push(`apt-get could not install it: ${run.error?.message ?? `${run.stdout}\n${run.stderr}`.trim()}`);
  return installed;
}

function howToInstall(name, service, trouble) {
  return [
    `The tests need a real ${name}, and there is none on this machine.`,
    ...trouble,
    'Do one of these:',
    `  Debian, Ubuntu  apt-get install ${service.apt}   (run as root, the tests do this themselves)`,
    `  macOS           brew install ${service.brew}`,
    `  Docker          start a Docker engine that has 'docker compose'; the tests then run ${service.image}`,
  ].join('\n');
}

function describe(name, launch) {
  if (launch.kind === 'docker') return `${name}: Docker image ${launch.image}`;
  return `${name}: ${launch.installed ? 'installed' : 'found'} ${launch.command}`;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  for (const name of names.length ? names : Object.keys(services)) {
    try {
      console.log(describe(name, await ensureService(name)));
    } catch (error) {
      console.error(error.message);
      process.exitCode = 1;
    }
  }
}
