import { Controller, Get } from '@nestjs/common';
import { StocktakeService } from './stocktake.service.js';

@Controller('stocktakes')
export class StocktakeController {
  constructor(private readonly stocktake: StocktakeService) {}

  /** How many ran, by tick (seconds since 1970): always one. */
  @Get()
  runs(): Promise<Record<string, number>> {
    return this.stocktake.runs();
  }
}
