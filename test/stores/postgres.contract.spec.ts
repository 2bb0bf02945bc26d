import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { storeContract } from '../contract/store.contracts.js';
import { usePostgres } from './postgres/setting.js';

const setting = usePostgres();

storeContract('postgres', () => postgresStore({ url: setting.url }));
