import { Injectable, NotFoundException, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { setTimeout as pause } from 'node:timers/promises';
import { Packer } from '../../../sample-app/src/stock/packer.js';
import { StockService, type Receipt } from '../../../sample-app/src/stock/stock.service.js';
import { StockStore } from '../../../sample-app/src/stock/stock.store.js';
import { settings } from '../settings.js';
import { openMarks } from './marks.js';

export enum Version {
  None = 'none',
  Local = 'local',
  Naive = 'naive',
  Lock = 'lock',
}

type Sell = (sku: string, units: number) => Promise<Receipt>;

/** Four ways to sell the same thing to many buyers at once. */
@Injectable()
export class Versions implements Record<Version, Sell>, OnModuleInit, OnApplicationShutdown {
  /** The last call in line at this process, by SKU. */
  private readonly tails = new Map<string, Promise<unknown>>();
  private readonly marks = openMarks();
  private stock!: StockStore;
  private packer!: Packer;
  private locked!: StockService;

  constructor(private readonly app: ModuleRef) {}

  /** The providers of the sample app, which exports none. */
  onModuleInit(): void {
    this.stock = this.app.get(StockStore, { strict: false });
    this.packer = this.app.get(Packer, { strict: false });
    this.locked = this.app.get(StockService, { strict: false });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.marks.close();
  }

  /** Oversells: `StockService.sell` without its lock. Two that read the same number write the same number, and one unit is sold twice. */
  async none(sku: string, units: number): Promise<Receipt> {
    const shelf = await this.stock.read(sku);
    if (shelf === null) throw new NotFoundException(`There is no "${sku}" in this shop.`);
    if (shelf < units) return { sku, sold: false, left: shelf };
    await this.packer.pack(sku, units);
    await this.stock.write(sku, shelf - units);
    return { sku, sold: true, left: shelf - units };
  }

  /** Right as long as there is one instance; of two, each knows only its own callers. */
  async local(sku: string, units: number): Promise<Receipt> {
    const sale = (this.tails.get(sku) ?? Promise.resolve()).then(() => this.none(sku, units));
    this.tails.set(
      sku,
      sale.catch(() => undefined),
    );
    return sale;
  }

  /**
   * SETNX with an expiry that is longer than most sales. It oversells from the first slow one on: nobody renews its mark, so the next sale enters. The slow
   * one, when it is done, deletes the mark of that next one, so that a third enters while the second is inside. The second then deletes the mark of the third.
   */
  async naive(sku: string, units: number): Promise<Receipt> {
    while (!(await this.marks.set(sku, settings.naiveExpiry))) await pause(25 + Math.random() * 50);
    try {
      return await this.none(sku, units);
    } finally {
      await this.marks.delete(sku);
    }
  }

  /** Exact, on any number of instances. */
  async lock(sku: string, units: number): Promise<Receipt> {
    return this.locked.sell(sku, units);
  }
}
