import 'reflect-metadata';
import { Controller, Injectable, Module, Post } from '@nestjs/common';

/** A database that remembers the largest token and refuses smaller ones. */
@Injectable()
export class Database {
  static readonly rows: { order: string; token: number }[] = [];
  isOpen = false;

  async connect(): Promise<void> {
    this.isOpen = true;
  }
  async insert(order: string, token: number): Promise<void> {
    if (Database.rows.some((row) => row.token > token)) throw new Error('A newer leader has written.');
    Database.rows.push({ order, token });
  }
}

@Injectable()
export class Orders {
  term!: Term; // set before the app starts

  constructor(private readonly database: Database) {}

  async place(order: string): Promise<void> {
    this.term.assertHeld(); // throws after a pause that was longer than the lease
    await this.database.insert(order, this.term.fencingToken!); // the database refuses a token smaller than the largest it has seen
  }
}

@Controller('orders')
class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post()
  async place(): Promise<void> {
    await this.orders.place('an apple');
  }
}

@Module({ controllers: [OrdersController], providers: [Orders, Database] })
class AppModule {}

// #region standby
import { NestFactory } from '@nestjs/core';
import { Locks, runStandby, type Term } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';

export async function main(): Promise<void> {
  const locks = new Locks(redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' })); // not those of the app's module
  const standby = runStandby({
    locks,
    name: 'orders',
    keyTimeout: 5_000,
    create: () => NestFactory.create(AppModule, { abortOnError: false, return503OnClosing: true }),
    prepare: (app) => app.get(Database).connect(),
    start: (app, term) => {
      app.get(Orders).term = term;
      return app.listen(process.env.PORT ?? 3000);
    },
  });
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => void standby.stop());
  await standby.done; // rejects when it cannot continue: let the process end, and its supervisor restart it
  await locks.close();
}
// #endregion
