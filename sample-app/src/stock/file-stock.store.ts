import type { OnModuleInit } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StockStore } from './stock.store.js';

/** Files of a folder, which all instances on this machine share. */
export class FileStockStore extends StockStore implements OnModuleInit {
  constructor(private readonly folder: string) {
    super();
  }

  async onModuleInit(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
  }

  async read(sku: string): Promise<number | null> {
    try {
      return Number(await readFile(join(this.folder, sku), 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  async write(sku: string, units: number): Promise<void> {
    // A reader sees the old file or the new one, never half of one.
    const next = join(this.folder, `${randomUUID()}.new`);
    await writeFile(next, String(units));
    await rename(next, join(this.folder, sku));
  }
}
