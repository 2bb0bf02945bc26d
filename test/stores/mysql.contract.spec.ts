import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { storeContract } from '../contract/store.contracts.js';
import type { MakeStore } from '../contract/open-locks.js';
import { sharedMariadb } from '../support/shared-server.js';

let url: string;
beforeAll(async () => {
  ({ url } = await sharedMariadb());
});

const open: MakeStore = Object.assign(() => mysqlStore({ url, schema: 'create', requestTimeout: 2000 }), {
  without: ['wakeUps', 'bus'] as const,
});

storeContract('MariaDB', open);
