import { IsInt, Matches, Max, Min } from 'class-validator';

const SKU = /^[a-z0-9][a-z0-9-]{0,39}$/;

export class ReduceStockDto {
  @Matches(SKU)
  sku = 'apple';

  @IsInt()
  @Min(1)
  @Max(1_000)
  units = 1;
}

export class ShelfDto {
  @Matches(SKU)
  sku!: string;
}

export class FillShelfDto {
  @IsInt()
  @Min(0)
  @Max(1_000_000_000)
  units!: number;
}
