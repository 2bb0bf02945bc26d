import { Controller, Get } from '@nestjs/common';
import { Bookkeeper } from './bookkeeper.js';

@Controller('who')
export class WhoController {
  constructor(private readonly bookkeeper: Bookkeeper) {}

  /** The process that answers, and its token. */
  @Get()
  who(): { pid: number; token: number | null } {
    return { pid: process.pid, token: this.bookkeeper.term.fencingToken };
  }
}
