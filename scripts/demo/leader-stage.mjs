import { Redis } from 'ioredis';
import { setTimeout as pause } from 'node:timers/promises';
import { openInstance, readLedger, who } from '../../test/e2e/leaders.ts';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/free-port.ts';
import { Watch } from './leader-watch.mjs';

const NAMES = ['A', 'B', 'C'];
/** Milliseconds that each wait takes at most. */
const PATIENCE = 20_000;

/** Three instances, a port each so that nothing but the lock keeps two from serving at once, and a supervisor that restarts what has ended. */
export class Stage {
  #instances = new Map();
  #start = performance.now();
  #surprises = [];
  #leaving = new Set();
  #frozen = undefined;

  constructor(store, options, leftovers) {
    this.store = store;
    this.options = options;
    this.leftovers = leftovers;
  }

  async open() {
    const { store, leftovers } = this;
    this.redis = new Redis(store.url);
    this.redis.on('error', () => undefined); // the commands reject
    leftovers.add(async () => this.redis.disconnect());
    for (const name of NAMES) await this.#launch(name, await freePort());
    this.watch = new Watch(
      who,
      // A frozen instance gets no requests: a balancer would find that its health check fails.
      () => [...this.#instances].filter(([name]) => name !== this.#frozen).map(([name, { port }]) => [name, port]),
      (line) => this.#say(line),
    );
    leftovers.add(() => this.watch.stop());
    await this.watch.firstAfter(performance.now(), undefined, PATIENCE);
  }

  /** Ends or freezes the leader, and resolves with how long it took until another one was at work. */
  async change(how) {
    await pause(this.options.keyTimeout); // in which the lease is renewed
    const { pid, name } = this.watch.answers.at(-1);
    const leader = this.#instances.get(name);
    if (how === 'SIGSTOP') this.#frozen = name;
    else this.#leaving.add(pid);
    const at = how === 'SIGSTOP' ? await this.#freeze(leader) : await this.#serverTime();
    const start = performance.now();
    this.#say(`${how} of ${name} (pid ${pid})`);
    if (how !== 'SIGSTOP') leader.signal(how === 'kill -9' ? 'SIGKILL' : how);
    const [answer, write] = await Promise.all([this.watch.firstAfter(start, pid, PATIENCE), this.#firstWriteAfter(at, pid)]);
    const status = how === 'SIGSTOP' ? await this.#thaw(name, leader) : await leader.exited;
    if (status !== undefined) await this.#launch(name, leader.port);
    return { how, pid, from: name, to: answer.name, status, answer: answer.answered - start, write: (write.at - at) / 1000 };
  }

  /** Ends the watch; resolves with what was seen. */
  async close() {
    await pause(this.options.keyTimeout);
    await this.watch.stop();
    return { entries: await this.#ledger(), answers: this.watch.answers, surprises: this.#surprises };
  }

  /** The output of the instances. */
  logs() {
    return [...this.#instances].map(([name, instance]) => `${name} has said:\n${instance.log()}`).join('\n');
  }

  /** Stops a leader in the middle of its job, so that it has a write to make when it goes on; resolves with the server's time. */
  async #freeze(leader) {
    const job = this.options.work * 1_000;
    for (;;) {
      leader.signal('SIGSTOP');
      const at = await this.#serverTime();
      const last = (await this.#ledger()).findLast(({ pid }) => pid === leader.pid);
      // Near its end or just begun, the last write might be on its way, or its reply unread, and no other would follow.
      if (at > last?.at + job / 4 && at < last?.at + (job * 3) / 4) return at;
      leader.signal('SIGCONT');
      await pause(this.options.work / 3);
    }
  }

  /** Lets a frozen leader go on where it stopped; resolves when it stands by again. */
  async #thaw(name, leader) {
    await pause(this.options.keyTimeout); // its lease is over, whether another one leads or not
    const { preloaded } = leader;
    this.#say(`SIGCONT to ${name}: it is in the middle of its job, and goes on as if it still led`);
    leader.signal('SIGCONT');
    await eventually(() => leader.preloaded > preloaded, { within: PATIENCE });
    this.#frozen = undefined;
    this.#say(`${name} has noticed, and stands by`);
  }

  async #launch(name, port) {
    const { keyTimeout, work } = this.options;
    const opening = openInstance(port, { STORE_URL: this.store.url, KEY_TIMEOUT_MS: keyTimeout, JOB_MS: work });
    this.leftovers.add(() =>
      opening.then(
        (instance) => this.#end(instance),
        () => undefined,
      ),
    );
    const instance = await opening;
    this.#instances.set(name, instance);
    const surprise = (status) => {
      if (!this.#leaving.has(instance.pid)) this.#surprises.push(`${name} ended by itself, with status ${status}:\n${instance.log()}`);
    };
    void instance.exited.then(surprise, surprise);
    this.#say(`${name} (pid ${instance.pid}) stands by: its container is built, its connections are open`);
  }

  async #end(instance) {
    this.#leaving.add(instance.pid);
    await instance.kill();
  }

  async #firstWriteAfter(at, pid) {
    for (const start = performance.now(); performance.now() < start + PATIENCE; await pause(50)) {
      const first = (await this.#ledger()).find((entry) => entry.accepted && entry.at > at && entry.pid !== pid);
      if (first) return first;
    }
    throw new Error(`Nobody has written to the ledger within ${PATIENCE} ms.`);
  }

  #ledger() {
    return readLedger(this.redis);
  }

  async #serverTime() {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  #say(line) {
    console.log(`${((performance.now() - this.#start) / 1000).toFixed(2).padStart(7)} s  ${line}`);
  }
}
