import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { storeContract } from 'nestjs-distributed-lock/testing/store';
import { usePostgres } from './postgres/setting.js';

const setting = usePostgres();

storeContract('postgres', () => postgresStore({ url: setting.url }));
