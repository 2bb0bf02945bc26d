import { Module } from '@nestjs/common';
import { Bookkeeper } from './bookkeeper.js';
import { Ledger } from './ledger.js';
import { WhoController } from './who.controller.js';

@Module({ controllers: [WhoController], providers: [Ledger, Bookkeeper] })
export class LeaderModule {}
