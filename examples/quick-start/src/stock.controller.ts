import { Body, Controller, Param, Post, Put } from '@nestjs/common';
import { StockService } from './stock.service.js';

@Controller('stock/:sku')
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Put()
  fill(@Param('sku') sku: string, @Body() { units }: { units: number }): Promise<void> {
    return this.stock.fill(sku, units);
  }

  @Post('buy')
  async buy(@Param('sku') sku: string): Promise<{ left: number }> {
    return { left: await this.stock.buy(sku) };
  }
}
