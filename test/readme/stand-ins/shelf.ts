import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';

/** What a database is to a shop: it reads and writes in a moment each, and guards nothing. */
@Injectable()
export class Shelf {
  private readonly units = new Map<string, number>();

  async read(sku: string): Promise<number> {
    await pause(2);
    return this.units.get(sku) ?? 0;
  }

  async write(sku: string, units: number): Promise<number> {
    await pause(2);
    this.units.set(sku, units);
    return units;
  }
}
