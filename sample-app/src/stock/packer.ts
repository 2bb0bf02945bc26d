import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';

/** Stands for the work between reading and writing: here it only takes time. */
@Injectable()
export class Packer {
  async pack(_sku: string, units: number): Promise<void> {
    await pause(5 * units);
  }
}
