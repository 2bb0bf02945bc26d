import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { sharedMariadb } from '../support/shared-server.js';

let url: string;
beforeAll(async () => {
  ({ url } = await sharedMariadb());
});

wholeStoreContract('MariaDB', () => mysqlStore({ url, schema: 'create', requestTimeout: 2000 }), { without: ['wakeUps', 'bus'] });
