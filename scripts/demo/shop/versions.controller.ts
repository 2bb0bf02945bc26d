import { Body, Controller, HttpCode, Param, ParseEnumPipe, Post } from '@nestjs/common';
import { ReduceStockDto } from '../../../sample-app/src/stock/stock.dto.js';
import type { Receipt } from '../../../sample-app/src/stock/stock.service.js';
import { Version, Versions } from './versions.js';

@Controller('stock')
export class VersionsController {
  constructor(private readonly versions: Versions) {}

  @Post(':version/reduce')
  @HttpCode(200)
  reduce(@Param('version', new ParseEnumPipe(Version)) version: Version, @Body() { sku, units }: ReduceStockDto): Promise<Receipt> {
    return this.versions[version](sku, units);
  }
}
