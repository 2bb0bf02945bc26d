import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Locks } from 'nestjs-distributed-lock';

// #region events
@Injectable()
export class LockMetrics implements OnModuleInit {
  readonly waits: number[] = [];
  readonly losses: string[] = [];

  constructor(private readonly locks: Locks) {}

  onModuleInit(): void {
    this.locks.on('acquired', ({ waited }) => this.waits.push(waited)); // milliseconds
    this.locks.on('lost', ({ key }) => this.losses.push(key));
  }
}
// #endregion
