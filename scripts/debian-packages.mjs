// Programs of Debian releases other than this machine's, unpacked into a folder with their own libraries. Nothing is installed, and apt's own lists
// and configuration stay as they are.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The packages of one release, from the mirror that this machine uses. */
export class DebianRelease {
  #folder;
  #options;

  /**
   * @param suite such as `trixie` or `experimental`
   * @param folder holds what is downloaded, for later runs too
   */
  constructor(suite, folder) {
    this.suite = suite;
    this.#folder = join(folder, suite);
    const path = (name) => join(this.#folder, name);
    this.#options = {
      'Dir::Etc::sourcelist': path('debian.sources'),
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State': path('state'),
      // Nothing is installed there: what a program needs is downloaded with it, the C library included.
      'Dir::State::status': path('status'),
      'Dir::Cache': path('cache'),
      'APT::Get::List-Cleanup': 'false',
      ...(process.getuid?.() === 0 && { 'APT::Sandbox::User': 'root' }),
    };
  }

  /** @throws what apt says, where the mirror has no such release */
  update() {
    for (const name of ['state/lists/partial', 'cache/archives/partial']) mkdirSync(join(this.#folder, name), { recursive: true });
    writeFileSync(this.#options['Dir::State::status'], '');
    // What is not a release of its own stands on another one.
    const base = this.suite === 'experimental' ? 'sid' : this.suite.replace(/-backports$/, '');
    const lines = ['Types: deb', `URIs: ${mirror()}`, `Suites: ${[...new Set([base, this.suite])].join(' ')}`, 'Components: main'];
    if (existsSync(KEYRING)) lines.push(`Signed-By: ${KEYRING}`);
    writeFileSync(this.#options['Dir::Etc::sourcelist'], `${lines.join('\n')}\n`);
    this.#apt('apt-get', ['update', '--error-on=any']);
  }

  /** @returns {string | undefined} the version of a package in this release itself */
  versionOf(name) {
    const lines = this.#apt('apt-cache', ['madison', name]).split('\n');
    const own = lines.map((line) => line.split('|').map((part) => part.trim()));
    return own.find(([, , where]) => where?.includes(` ${this.suite}/main `))?.[1];
  }

  /** @returns {string} a folder with the files of the package and of all that it needs */
  unpack(name, version) {
    const root = join(this.#folder, `${name}_${version.replace(/[^\w.+~-]/g, '_')}`);
    const done = join(root, '.unpacked');
    if (existsSync(done)) return root;
    rmSync(root, { recursive: true, force: true });
    const archives = join(this.#folder, 'cache/archives');
    for (const file of debsIn(archives)) rmSync(join(archives, file));
    this.#apt('apt-get', ['install', '--download-only', '--yes', '--no-install-recommends', '-t', this.suite, `${name}=${version}`]);
    mkdirSync(root, { recursive: true });
    for (const file of debsIn(archives)) run('dpkg', ['-x', join(archives, file), root]);
    writeFileSync(done, '');
    return root;
  }

  #apt(command, args) {
    const options = Object.entries(this.#options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    return run(command, [...options, ...args]);
  }
}

/**
 * A script that starts a program of an unpacked folder by the loader and with the libraries of that folder.
 *
 * @param program its path in the folder. Programs that act by their name see its last part.
 */
export function wrapperOf(root, program) {
  const triplet = run('dpkg-architecture', ['-qDEB_HOST_MULTIARCH'], '') || archOf(root);
  const libraries = ['lib', 'usr/lib'].flatMap((folder) => [join(root, folder, triplet), join(root, folder)]).filter(existsSync);
  const loader = ['lib64', 'usr/lib64', `lib/${triplet}`, `usr/lib/${triplet}`, 'lib', 'usr/lib']
    .flatMap((folder) => filesIn(join(root, folder)).map((file) => join(root, folder, file)))
    // A link with an absolute target leads out of the folder.
    .find((file) => /\/ld-[^/]*\.so[^/]*$/.test(file) && existsSync(file));
  if (!loader) throw new Error(`There is no loader of programs in ${root}.`);
  const wrapper = join(root, program.split('/').at(-1));
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const command = [loader, '--library-path', libraries.join(':'), join(root, program)].map(quoted).join(' ');
  writeFileSync(wrapper, `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(wrapper, 0o755);
  return wrapper;
}

/** Where this machine gets Debian's packages from. */
function mirror() {
  const system = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(system)?.[1];
  if (!/^ID=debian$/m.test(system) || !codename) throw new Error('This machine is not Debian: its mirror has no other releases of Debian.');
  const targets = run('apt-get', ['indextargets', '--format', '$(RELEASE) $(COMPONENT) $(REPO_URI)', 'Created-By: Packages']);
  const uri = targets
    .split('\n')
    .map((line) => line.split(' '))
    .find(([release, component]) => release === codename && component === 'main')?.[2];
  if (!uri) throw new Error(`apt is not set up for ${codename} on this machine.`);
  return uri;
}

/** The folder of libraries, by what is in it. */
function archOf(root) {
  return filesIn(join(root, 'usr/lib')).find((name) => /^[^-]+-linux-gnu/.test(name)) ?? '';
}

function filesIn(folder) {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function debsIn(folder) {
  return filesIn(folder).filter((file) => file.endsWith('.deb'));
}

/** @param otherwise what is returned where the command is missing; default: that throws */
function run(command, args, otherwise) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, timeout: 300_000 });
  if (status === 0) return stdout.trim();
  if (otherwise !== undefined) return otherwise;
  const problem = stderr
    ?.split('\n')
    .filter((line) => /^(E|W|Err|dpkg):?/.test(line))
    .at(-1);
  throw new Error(`${command} ${args.at(-1)}: ${error?.message ?? (problem || `status ${status}`)}`);
}
