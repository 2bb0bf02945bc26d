/** The fencing tokens of all keys. They start at the wall clock, so that they grow over a restart of the process too. */
export class MemoryTokens {
  private last = 0;

  /** The first of so many new ones. */
  next(count: number): number {
    const token = Math.max(this.last + 1, Date.now() * 1000);
    this.last = token + count - 1;
    return token;
  }
}
