// #region cli-config
import { postgresStore } from 'nestjs-distributed-lock/postgres';

export default {
  stores: {
    default: { sentinels: [{ host: 'sentinel-1', port: 26379 }], name: 'mymaster' }, // options of redisStore
    reports: postgresStore({ url: process.env.DATABASE_URL ?? 'postgres://localhost/reports' }),
  },
  namespace: 'shop:',
};
// #endregion
