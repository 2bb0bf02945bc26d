import { pause } from '../support/time.js';
import { random } from '../support/random.js';

/** A counter that nothing guards: whoever increments it while another does so loses an update. It also notices who was inside together. */
export class SharedCounter {
  value = 0;
  overlaps = 0;
  private inside = 0;

  async increment(): Promise<void> {
    if (++this.inside > 1) this.overlaps++;
    const seen = this.value;
    await pause(random() * 2);
    this.value = seen + 1;
    this.inside--;
  }
}
