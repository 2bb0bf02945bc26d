import { BullModule } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { PaymentProcessor } from './payment.processor.js';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';

@Module({
  imports: [
    DistributedLockModule.forRoot({ store: redisStore({ url }), namespace: 'bullmq:' }),
    BullModule.forRoot({ connection: { url } }),
    BullModule.registerQueue({ name: 'payments' }),
  ],
  providers: [PaymentProcessor],
})
export class AppModule {}
