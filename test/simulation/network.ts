import type { Random } from '../chaos/random.js';
import type { Host } from './host.js';
import { MESSAGE, type World } from './world.js';

/** What a faulty link does. Milliseconds, and parts of all messages. */
export interface Weather {
  delay: number;
  /** Each message takes so much longer. */
  distance: number;
  loss: number;
  /** Arrives once more, later. */
  twice: number;
  /** Nothing arrives in this direction. */
  isCutUp: boolean;
  isCutDown: boolean;
}

const CALM: Weather = { delay: 0, distance: 0, loss: 0, twice: 0, isCutUp: false, isCutDown: false };

/** The way from an app to a server and back. A message may overtake another one. */
export class Link {
  private weather = CALM;
  private readonly faults = new Set<Partial<Weather>>();

  constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly app: Host,
    private readonly server: Host,
  ) {}

  /** @returns what ends it. */
  spoil(fault: Partial<Weather>): () => void {
    const change = (): void => void (this.weather = Object.assign({}, CALM, ...this.faults) as Weather);
    this.faults.add(fault);
    change();
    return () => {
      this.faults.delete(fault);
      change();
    };
  }

  up(arrive: () => void): void {
    this.send(this.server, this.weather.isCutUp ? 1 : this.weather.loss, arrive);
  }

  down(arrive: () => void): void {
    this.send(this.app, this.weather.isCutDown ? 1 : this.weather.loss, arrive);
  }

  private send(to: Host, loss: number, arrive: () => void): void {
    const { world, random } = this;
    const { delay, distance, twice } = this.weather;
    if (loss > 0 && random.chance(loss)) return void world.lost++;
    for (const times = twice > 0 && random.chance(twice) ? 2 : 1, sent = { count: 0 }; sent.count < times; sent.count++) {
      // Mostly short, sometimes long.
      const takes = distance + 0.2 + 0.5 * random.next() + delay * random.next() ** 3;
      world.at(world.now + takes, arrive, to, MESSAGE);
    }
  }
}
