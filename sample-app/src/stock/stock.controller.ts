import { Body, Controller, Get, HttpCode, Param, ParseEnumPipe, Post, Put } from '@nestjs/common';
import { LocalLockService } from '../versions/local-lock.service.js';
import { LockedService } from '../versions/locked.service.js';
import { NaiveLockService } from '../versions/naive-lock.service.js';
import type { StockVersion } from '../versions/stock-version.js';
import { UnlockedService } from '../versions/unlocked.service.js';
import type { Receipt } from './sale.js';
import { FillShelfDto, ReduceStockDto, ShelfDto } from './stock.dto.js';
import { StockRoomService } from './stock-room.service.js';

enum Version {
  None = 'none',
  Local = 'local',
  Naive = 'naive',
  Lock = 'lock',
}

@Controller()
export class StockController {
  private readonly versions: Record<Version, StockVersion>;

  constructor(
    none: UnlockedService,
    local: LocalLockService,
    naive: NaiveLockService,
    private readonly lock: LockedService,
    private readonly stockRoom: StockRoomService,
  ) {
    this.versions = { none, local, naive, lock };
  }

  @Post('reduceStock')
  @HttpCode(200)
  reduceStock(@Body() { sku, units }: ReduceStockDto): Promise<Receipt> {
    return this.lock.reduce(sku, units);
  }

  /** The same without, with too little, and with the right lock. */
  @Post('stock/:version/reduce')
  @HttpCode(200)
  reduce(@Param('version', new ParseEnumPipe(Version)) version: Version, @Body() { sku, units }: ReduceStockDto): Promise<Receipt> {
    return this.versions[version].reduce(sku, units);
  }

  @Get('stock/:sku')
  async left(@Param() { sku }: ShelfDto): Promise<{ sku: string; left: number }> {
    return { sku, left: await this.stockRoom.left(sku) };
  }

  @Put('stock/:sku')
  async fill(@Param() { sku }: ShelfDto, @Body() { units }: FillShelfDto): Promise<{ sku: string; left: number }> {
    await this.stockRoom.fill(sku, units);
    return { sku, left: units };
  }
}
