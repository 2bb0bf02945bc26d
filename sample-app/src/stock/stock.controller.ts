import { Body, Controller, Get, HttpCode, Param, Post, Put } from '@nestjs/common';
import { FillShelfDto, ReduceStockDto, ShelfDto } from './stock.dto.js';
import { StockService, type Receipt } from './stock.service.js';

@Controller()
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Post('reduceStock')
  @HttpCode(200)
  reduceStock(@Body() { sku, units }: ReduceStockDto): Promise<Receipt> {
    return this.stock.sell(sku, units);
  }

  @Get('stock/:sku')
  async left(@Param() { sku }: ShelfDto): Promise<{ sku: string; left: number }> {
    return { sku, left: await this.stock.left(sku) };
  }

  @Put('stock/:sku')
  async fill(@Param() { sku }: ShelfDto, @Body() { units }: FillShelfDto): Promise<{ sku: string; left: number }> {
    await this.stock.fill(sku, units);
    return { sku, left: units };
  }
}
