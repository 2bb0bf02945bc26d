import { pause } from '../support/time.js';
import { random } from '../support/random.js';

/** A record of two fields that belong together, and that nothing guards: who reads while another writes may see one new and one old. */
export class TornRecord {
  private left = 0;
  private right = 0;
  private readers = 0;
  private writers = 0;
  /** How often somebody saw it half written, or was in with a writer. */
  torn = 0;
  mostReaders = 0;
  writes = 0;

  async read(): Promise<void> {
    this.mostReaders = Math.max(this.mostReaders, ++this.readers);
    const left = this.left;
    await pause(random() * 3);
    if (left !== this.right || this.writers > 0) this.torn++;
    this.readers--;
  }

  async write(): Promise<void> {
    if (++this.writers > 1 || this.readers > 0) this.torn++;
    const value = this.left + 1;
    this.left = value;
    await pause(random() * 3);
    if (this.left !== value) this.torn++;
    this.right = value;
    this.writes++;
    this.writers--;
  }
}
