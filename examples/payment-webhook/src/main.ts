import { Body, Controller, Get, HttpCode, Module, type OnApplicationShutdown, type OnModuleInit, Param, Post } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { DistributedLock, DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'pg';

const url = process.env.DATABASE_URL ?? 'postgres://postgres@localhost:5432/postgres';

/** The provider delivers an event until it gets a 200: more than once, and to several instances at the same time. */
interface PaymentEvent {
  id: string;
  account: string;
  amount: number;
}

@Controller()
export class PaymentController implements OnModuleInit, OnApplicationShutdown {
  // The error of an idle connection would end the process without a listener.
  private readonly db = new Pool({ connectionString: url }).on('error', (error) => console.error(error));

  async onModuleInit(): Promise<void> {
    const table = 'CREATE TABLE IF NOT EXISTS bookings (event text PRIMARY KEY, account text NOT NULL, amount int NOT NULL)';
    await this.db.query(`BEGIN; SELECT pg_advisory_xact_lock(1); ${table}; COMMIT`);
  }

  // The lock: of two deliveries one waits, and then finds the booking. Without it both would ask the provider.
  // `waitTimeout` is shorter than what the provider waits for an answer: after a 423 it delivers the event again.
  @Post('webhook')
  @HttpCode(200)
  @DistributedLock({ value: 'payment', key: (event: PaymentEvent) => event.id, keyTimeout: 3_000, waitTimeout: 5_000 })
  async receive(@Body() { id, account, amount }: PaymentEvent): Promise<{ booked: boolean }> {
    const { rowCount: known } = await this.db.query('SELECT 1 FROM bookings WHERE event = $1', [id]);
    if (known) return { booked: false };
    console.log(`Verifies ${id}`);
    await pause(Number(process.env.VERIFY_MS ?? 50)); // asks the provider whether the payment is real
    // The idempotency key: a holder that was paused, and lost its lock, cannot book a second time either.
    const booking = await this.db.query('INSERT INTO bookings VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [id, account, amount]);
    return { booked: booking.rowCount === 1 };
  }

  @Get('balance/:account')
  async balance(@Param('account') account: string): Promise<{ balance: number }> {
    const { rows } = await this.db.query('SELECT coalesce(sum(amount), 0)::int AS balance FROM bookings WHERE account = $1', [account]);
    return rows[0];
  }

  async onApplicationShutdown(): Promise<void> {
    await this.db.end();
  }
}

const store = postgresStore({ url, schema: 'create' });
const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
@Module({ imports: [DistributedLockModule.forRoot({ store })], controllers: [PaymentController], providers: [filter] })
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // a stopping app waits for its locked methods
await app.listen(process.env.PORT ?? 3000);
console.log(`The webhook is open at ${await app.getUrl()}`);
