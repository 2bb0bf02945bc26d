// The processes in which one contestant works: fresh ones for each measurement, so that nobody pays for another's garbage.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('child.mjs', import.meta.url));

/** Milliseconds after which a crew that has not answered is ended. The longest measurement takes half of it. */
const LIMIT = 180_000;

/** Runs `use` with a crew that is ready, and ends it afterwards, whatever it is doing. */
export async function withCrew({ contestant, port, size = 1, retryDelay }, use) {
  const members = Array.from({ length: size }, () => new Member(contestant.file));
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`No answer within ${LIMIT / 1000} s`)), LIMIT)));
  try {
    const [version] = await Promise.all(members.map((member) => member.ask('open', { port, retryDelay, as: contestant.as })));
    return await Promise.race([use(new Crew(members, version)), late]);
  } finally {
    clearTimeout(timer);
    await Promise.all(members.map((member) => member.end()));
  }
}

class Crew {
  constructor(members, version) {
    Object.assign(this, { members, version });
  }

  /** All do it at the same time. */
  ask(task, options) {
    return Promise.all(this.members.map((member, index) => member.ask(task, { ...options, index })));
  }

  get pids() {
    return this.members.map(({ pid }) => pid);
  }

  one(index, task, options) {
    return this.members[index].ask(task, options);
  }
}

class Member {
  #child;
  #open = new Map();
  #asked = 0;

  constructor(file) {
    this.#child = fork(program, [file], { serialization: 'advanced', execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    let complaint = '';
    this.#child.stderr.on('data', (data) => (complaint = (complaint + data).slice(-2000)));
    this.#child.on('message', ({ id, error, value }) => {
      const { resolve, reject } = this.#open.get(id);
      this.#open.delete(id);
      if (error === undefined) resolve(value);
      else reject(new Error(error));
    });
    this.#child.on('close', (code, signal) => {
      for (const { reject } of this.#open.values()) reject(new Error(`A process ended with ${signal ?? code}: ${complaint.trim()}`));
    });
  }

  get pid() {
    return this.#child.pid;
  }

  ask(task, options) {
    const id = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#child.send({ id, task, options }, (error) => error && reject(error));
    });
  }

  async end() {
    this.#open.clear();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'close');
  }
}
