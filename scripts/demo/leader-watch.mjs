import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds between two looks at all ports. */
const PERIOD = 15;

/** Asks all instances again and again who they are, as the load balancer in front of them would, and says what has changed. */
export class Watch {
  /** Each answer: `{ name, pid, token, sent, answered }`, times in ms. */
  answers = [];
  #said = undefined;
  #stopped = false;
  #running;

  /** @param ports `() => [[name, port]…]` */
  constructor(ask, ports, say) {
    this.#running = this.#watch(ask, ports, say);
  }

  async stop() {
    this.#stopped = true;
    await this.#running;
  }

  /** The first answer of another than `pid` to a request that was sent after `start`. */
  async firstAfter(start, pid, within) {
    for (;;) {
      const first = this.answers.find((answer) => answer.sent >= start && answer.pid !== pid);
      if (first) return first;
      if (performance.now() > start + within) throw new Error(`Nobody has taken over within ${within} ms.`);
      await pause(PERIOD / 3);
    }
  }

  async #watch(ask, ports, say) {
    while (!this.#stopped) {
      const round = await Promise.all(ports().map(([name, port]) => this.#look(ask, name, port)));
      const present = round.filter((answer) => answer !== undefined);
      const line = present.map(({ name, pid, token }) => `${name} answers (pid ${pid}, term ${token})`).join(', ') || 'nobody answers';
      if (line !== this.#said) say(line);
      this.#said = line;
      await pause(PERIOD);
    }
  }

  async #look(ask, name, port) {
    const sent = performance.now();
    const answer = await ask(port);
    if (!answer) return undefined;
    const seen = { name, sent, answered: performance.now(), ...answer };
    this.answers.push(seen);
    return seen;
  }
}
