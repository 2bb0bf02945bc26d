import { setTimeout as pause } from 'node:timers/promises';

/** An unguarded counter that is read and written with a pause between: two at a time lose an update. */
export class Tally {
  value = 0;
  /** How many were in it at once, at most. */
  most = 0;
  private inside = 0;

  async add(): Promise<number> {
    this.most = Math.max(this.most, ++this.inside);
    const seen = this.value;
    await pause(Math.random() * 3);
    this.value = seen + 1;
    this.inside--;
    return this.value;
  }
}
