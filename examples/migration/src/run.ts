// The program that `npm run migrate` runs under the lock.
import { db, migrate } from './migrate.js';

await migrate();
await db.destroy();
