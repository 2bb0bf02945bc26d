/** What must be ended or removed at the end, however the end comes: the last first. */
export class Leftovers {
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

  /** @param inHurry somebody waits for it, and for nothing else */
  clear(inHurry = false) {
    this.#clearing ??= this.#clear(inHurry);
    return this.#clearing;
  }

  async #clear(inHurry) {
    for (const end of this.#ends.reverse()) await end(inHurry).catch((error) => console.error(error));
  }
}
