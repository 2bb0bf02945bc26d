import { Injectable, type OnModuleInit } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { appendFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { config } from '../config.js';
import { StockStore } from './stock.store.js';

/** The stock in files of a folder, which all instances on this machine share. */
@Injectable()
export class FileStockStore extends StockStore implements OnModuleInit {
  private readonly folder = join(config.directory, 'stock');
  private readonly stocktakesFile = join(this.folder, 'stocktakes');

  async onModuleInit(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
  }

  async read(sku: string): Promise<number | null> {
    const units = await textOf(join(this.folder, `${sku}.units`));
    return units === null ? null : Number(units);
  }

  async write(sku: string, units: number): Promise<void> {
    // A reader sees the old file or the new one, never half of one.
    const next = join(this.folder, `${randomUUID()}.new`);
    await writeFile(next, String(units));
    await rename(next, join(this.folder, `${sku}.units`));
  }

  async mark(name: string, expiry: number): Promise<boolean> {
    const file = this.markFile(name);
    const end = Number((await textOf(file)) ?? Infinity);
    if (end <= Date.now()) await this.unmark(name);
    try {
      await writeFile(file, String(Date.now() + expiry), { flag: 'wx' });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return false;
    }
  }

  async unmark(name: string): Promise<void> {
    await rm(this.markFile(name), { force: true });
  }

  async countStocktake(tick: number): Promise<void> {
    await appendFile(this.stocktakesFile, `${tick}\n`);
  }

  async stocktakes(): Promise<Record<string, number>> {
    const runs: Record<string, number> = {};
    for (const tick of ((await textOf(this.stocktakesFile)) ?? '').split('\n')) if (tick !== '') runs[tick] = (runs[tick] ?? 0) + 1;
    return runs;
  }

  private markFile(name: string): string {
    return join(this.folder, `${encodeURIComponent(name)}.mark`);
  }
}

async function textOf(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
