import { Injectable } from '@nestjs/common';
import { StockStore } from './stock.store.js';

/** The stock of a shop with one instance. */
@Injectable()
export class MemoryStockStore extends StockStore {
  private readonly units = new Map<string, number>();
  private readonly marks = new Map<string, number>();
  private readonly runs = new Map<number, number>();

  async read(sku: string): Promise<number | null> {
    return this.units.get(sku) ?? null;
  }

  async write(sku: string, units: number): Promise<void> {
    this.units.set(sku, units);
  }

  async mark(name: string, expiry: number): Promise<boolean> {
    const now = performance.now();
    if ((this.marks.get(name) ?? 0) > now) return false;
    this.marks.set(name, now + expiry);
    return true;
  }

  async unmark(name: string): Promise<void> {
    this.marks.delete(name);
  }

  async countStocktake(tick: number): Promise<void> {
    this.runs.set(tick, (this.runs.get(tick) ?? 0) + 1);
  }

  async stocktakes(): Promise<Record<string, number>> {
    return Object.fromEntries(this.runs);
  }
}
