// Programs of Debian releases other than this machine's, unpacked into a folder with their own libraries. Nothing is installed, and apt's own lists
// and configuration stay as they are.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const DAY = 86_400_000;
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

  /** Asks the mirror again after a day. @throws what apt says, where the mirror has no such release */
  update() {
    const done = join(this.#folder, 'state/updated');
    if (existsSync(done) && Date.now() - statSync(done).mtimeMs < DAY) return;
    for (const name of ['state/lists/partial', 'cache/archives/partial']) mkdirSync(join(this.#folder, name), { recursive: true });
    writeFileSync(this.#options['Dir::State::status'], '');
    // What is not a release of its own stands on another one.
    const base = this.suite === 'experimental' ? 'sid' : this.suite.replace(/-backports$/, '');
    const lines = ['Types: deb', `URIs: ${mirror()}`, `Suites: ${[...new Set([base, this.suite])].join(' ')}`, 'Components: main'];
    if (existsSync(KEYRING)) lines.push(`Signed-By: ${KEYRING}`);
    writeFileSync(this.#options['Dir::Etc::sourcelist'], `${lines.join('\n')}\n`);
    this.#apt('apt-get', ['update', '--error-on=any']);
    writeFileSync(done, '');
  }

  /** @returns {Map<string, string>} of these packages, the versions of those that this release itself has */
  versionsOf(names) {
    const lines = this.#apt('apt-cache', ['madison', ...names]).split('\n');
    const own = lines
      .map((line) => line.split('|').map((part) => part.trim()))
      .filter(([, , where]) => where?.includes(` ${this.suite}/main `));
    // The newest is the first.
    return new Map(own.reverse());
  }

  /**
   * @param {string[]} [others] packages that are unpacked with it; default: all that it needs
   * @returns {string} a folder with the files of the package
   */
  unpack(name, version, others) {
    const root = join(this.#folder, `${name}_${version.replace(/[^\w.+~-]/g, '_')}`);
    const done = join(root, '.unpacked');
    if (existsSync(done)) return root;
    rmSync(root, { recursive: true, force: true });
    const archives = join(this.#folder, 'cache/archives');
    for (const file of debsIn(archives)) rmSync(join(archives, file));
    const wanted = ['-t', this.suite, `${name}=${version}`, ...(others ?? [])];
    if (others) this.#apt('apt-get', ['download', ...wanted], archives);
    else this.#apt('apt-get', ['install', '--download-only', '--yes', '--no-install-recommends', ...wanted]);
    mkdirSync(root, { recursive: true });
    for (const file of debsIn(archives)) run('dpkg', ['-x', join(archives, file), root]);
    writeFileSync(done, '');
    return root;
  }

  #apt(command, args, cwd) {
    const options = Object.entries(this.#options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    return run(command, [...options, ...args], { cwd });
  }
}

/**
 * Puts scripts in the places of programs of an unpacked folder, which start them by the loader and with the libraries of that folder. There they find
 * each other, and their files, beside themselves.
 *
 * @param {string[]} programs their paths
 * @returns {string[]} the same paths
 */
export function wrapInPlace(root, programs) {
  const triplet = run('dpkg-architecture', ['-qDEB_HOST_MULTIARCH'], { otherwise: '' }) || archOf(root);
  const libraries = ['lib', 'lib64', 'usr/lib', 'usr/lib64']
    .flatMap((folder) => [join(root, folder, triplet), join(root, folder)])
    .filter(existsSync);
  const loader = ['lib64', 'usr/lib64', `lib/${triplet}`, `usr/lib/${triplet}`, 'lib', 'usr/lib']
    .flatMap((folder) => filesIn(join(root, folder)).map((file) => join(root, folder, file)))
    // A link with an absolute target leads out of the folder, to the loader of this machine or to nothing.
    .find((file) => /\/ld-[^/]*\.so[^/]*$/.test(file) && existsSync(file) && realpathSync(file).startsWith(realpathSync(root)));
  // Where there is none, the programs are static.
  if (!loader) return programs;
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  return programs.map((place) => {
    const real = `${place}.real`;
    if (!existsSync(real)) renameSync(place, real);
    const command = [loader, '--argv0', place, '--library-path', libraries.join(':'), real].map(quoted).join(' ');
    writeFileSync(place, `#!/bin/sh\nexec ${command} "$@"\n`);
    chmodSync(place, 0o755);
    return place;
  });
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
function run(command, args, { cwd, otherwise } = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 28, timeout: 300_000 });
  if (status === 0) return stdout.trim();
  if (otherwise !== undefined) return otherwise;
  const problem = stderr
    ?.split('\n')
    .filter((line) => /^(E|W|Err|dpkg):?/.test(line))
    .at(-1);
  throw new Error(`${command} ${args.at(-1)}: ${error?.message ?? (problem || `status ${status}`)}`);
}
