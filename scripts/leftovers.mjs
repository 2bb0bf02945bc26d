/** An error whose message says all that a reader needs: it is printed without its stack. */
export class Explained extends Error {}

/** A list of what must be ended or removed at the end, however the end comes: the last first. */
class Leftovers {
  #ends = [];
  #clearing = undefined;

  /**
   * To be called before there is anything to end, with what then waits for it to be there.
   *
   * @param {(inHurry: boolean) => Promise<unknown>} end
   */
  add(end) {
    if (this.#clearing) throw new Error('Too late: all is being cleared away.');
    this.#ends.push(end);
  }

  /** Resolves with a server that is being started, and is stopped at the end. */
  async addServer(starting) {
    const stop = (server) => server.stop();
    this.add(() => starting.then(stop, () => undefined));
    return starting;
  }

  /** @param inHurry a signal has come, so nothing is waited for but this */
  clear(inHurry = false) {
    this.#clearing ??= this.#clear(inHurry);
    return this.#clearing;
  }

  async #clear(inHurry) {
    for (const end of this.#ends.reverse()) await end(inHurry).catch((error) => console.error(error));
  }
}

/**
 * Runs a program, and ends what it has left, however it ends, signals included.
 *
 * @param {(leftovers: Leftovers) => Promise<unknown>} main resolves to false if it has failed, and has said why
 */
export async function withLeftovers(main) {
  const leftovers = new Leftovers();
  let interrupted = false;
  for (const [signal, status] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
    process.once(signal, () => {
      interrupted = true;
      void leftovers.clear(true).finally(() => process.exit(status));
    });
  }
  try {
    process.exitCode = (await main(leftovers)) === false ? 1 : 0;
  } catch (error) {
    if (!interrupted) console.error(error instanceof Explained ? error.message : error);
    process.exitCode = 1;
  } finally {
    await leftovers.clear();
  }
}
