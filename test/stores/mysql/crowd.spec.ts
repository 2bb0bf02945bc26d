import { wrongsOfCrowd } from '../../support/crowd.js';
import { sharedMariadb } from '../../support/shared-server.js';

it('three processes on MariaDB, one of which is killed and replaced now and then, lose no update (G2, G8)', async () => {
  const options = { url: (await sharedMariadb()).url, schema: 'create', requestTimeout: 10_000 };
  expect(await wrongsOfCrowd({ store: 'mysql', options, turns: 0, kills: 4 })).toBe(0);
});
