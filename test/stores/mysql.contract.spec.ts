import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { sharedMariadb } from '../support/shared-server.js';

let url: string;
beforeAll(async () => {
  ({ url } = await sharedMariadb());
});

storeContract('MariaDB', () => mysqlStore({ url, schema: 'create', requestTimeout: 2000 }), { without: ['wakeUps', 'bus'] });
