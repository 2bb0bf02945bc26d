import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';

class CreateStock1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE stock (sku text PRIMARY KEY, units int NOT NULL)');
    await runner.query('SELECT pg_sleep(1)'); // a migration takes its time
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE stock');
  }
}

export const db = new DataSource({
  type: 'postgres',
  url: process.env.DATABASE_URL ?? 'postgres://postgres@localhost:5432/postgres',
  migrations: [CreateStock1700000000000],
});

/** Runs what is not in the table `migrations` yet. Two instances that do this at the same time run it twice, and one of them fails. */
export async function migrate(): Promise<void> {
  await db.initialize();
  const done = await db.runMigrations();
  console.log(done.length > 0 ? `Has migrated: ${done.map(({ name }) => name).join(', ')}` : 'Nothing to migrate');
}
