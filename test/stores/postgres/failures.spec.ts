import pg from 'pg';
import { eventually } from '../../support/eventually.js';
import { type Pgbouncer, startPgbouncer } from '../../support/pgbouncer.js';
import { changeOf, exchange, refusalOf, useOwnPostgres, wakes } from './setting.js';

const own = useOwnPostgres();
const { setting, listening } = own;

describe('a connection', () => {
  it('that is half open costs a request timeout, and is closed', async () => {
    const table = setting.open({ url: own.url, requestTimeout: 2_000 });
    await Promise.all([1, 2].map(() => exchange(table, {})));
    own.proxy.blackhole();
    const errors = await Promise.all([1, 2].map(() => refusalOf(exchange(table, {}))));
    for (const error of errors) expect(error).toMatchObject({ transient: true, isUnsent: false });
    expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, isUnsent: true });
    await own.proxy.heal();
    expect(await exchange(table, {})).toMatchObject({ written: true });
    await eventually(() => expect(own.proxy.connections).toBe(1));
  });

  it('that takes longer than some requests is waited for, and used', async () => {
    const table = setting.open({ url: own.url, requestTimeout: 500, max: 1, listen: false });
    const before = own.proxy.made;
    own.proxy.holdReplies();
    for (let tries = 0; tries < 4; tries++) expect(await refusalOf(exchange(table, {}))).toMatchObject({ transient: true, isUnsent: true });
    await own.proxy.heal();
    await eventually(() => exchange(table, {}));
    expect(own.proxy.made - before).toBe(1);
  });
});

it('an inbox whose connection is half open is found by its own message, and opened again', async () => {
  const one = await listening({ listen: { connectionString: own.url }, requestTimeout: 2_000 });
  const before = one.heard.length;
  own.proxy.blackhole();
  await exchange(setting.open(), { messages: [{ inbox: one.inbox, text: 'owner' }] });
  one.wakeUps.check();
  await eventually(() => !one.wakeUps.isOpen);
  expect(one.heard).toHaveLength(before);
  await own.proxy.heal();
  await eventually(() => one.wakeUps.isOpen && one.heard.length > before);
  await wakes(setting.open(), one);
});

it('an inbox whose connection takes longer than a request is waited for', async () => {
  const table = setting.open({ url: own.url, requestTimeout: 2_000, max: 1 });
  const before = own.proxy.made;
  own.proxy.holdReplies();
  const opened = table.wakeUps!.open(() => undefined);
  for (let tries = 0; tries < 2; tries++) await refusalOf(exchange(table, {}));
  await own.proxy.heal();
  await opened;
  expect(table.wakeUps!.isOpen).toBe(true);
  expect(own.proxy.made - before).toBe(2);
});

it('a pooler that lends connections for a session wakes', async () => {
  const bouncer = await startPgbouncer({ to: own.server.connection, poolMode: 'session' });
  setting.closes(() => bouncer.stop());
  const one = await listening({ url: bouncer.url });
  expect(one.wakeUps.isOpen).toBe(true);
  await wakes(setting.open({ url: bouncer.url }), one);
});

describe('behind a pooler that lends connections for a transaction', () => {
  let bouncer: Pgbouncer;
  beforeAll(async () => {
    bouncer = await startPgbouncer({ to: own.server.connection, config: ['default_pool_size = 3'] });
  });
  afterAll(() => bouncer.stop());

  it('an inbox is not open, though LISTEN was accepted; one warning says so; changes are made all the same', async () => {
    const one = await listening({ url: bouncer.url, prepare: false, requestTimeout: 200 });
    expect(one.wakeUps.isOpen).toBe(false);
    expect(one.wakeUps.state).toBe('interrupted');
    await eventually(() => expect(one.warnings).toHaveLength(1));
    expect(one.warnings[0]).toMatch(/^Postgres waiters cannot be woken and poll instead: /);
    expect(await exchange(one.table, {})).toMatchObject({ written: true });
    expect(one.warnings).toHaveLength(1);
  });

  it('a direct way to the server wakes', async () => {
    const one = await listening({ url: bouncer.url, prepare: false, listen: { connectionString: setting.url } });
    expect(one.wakeUps.isOpen).toBe(true);
    await wakes(setting.open({ url: bouncer.url, prepare: false }), one);
  });

  it('prepared statements are used no more once they were forgotten, with one warning', async () => {
    const table = setting.open({ url: bouncer.url });
    const warned: string[] = [];
    table.onWarning((message) => warned.push(message));
    const other = new pg.Client(bouncer.url);
    setting.closes(() => other.end());
    await other.connect();
    for (let round = 0; round < 3; round++) {
      expect(await exchange(table, {})).toMatchObject({ written: true });
      // Takes the connection to the server that was used last.
      await other.query('BEGIN');
      expect(await exchange(table, {})).toMatchObject({ written: true });
      await other.query('ROLLBACK');
    }
    expect(warned).toEqual([expect.stringContaining('prepare: false')]);
  });
});

it('a standby is an outage, for nothing is written there; waiters poll, with one warning, until it is promoted', async () => {
  const standby = await own.server.standby();
  setting.closes(() => standby.stop());
  const table = setting.open({ url: standby.url });
  expect(await refusalOf(exchange(table, {}))).toMatchObject({
    transient: true,
    isRefusal: true,
    message: expect.stringMatching(/(read-only|recovery).+primary/),
  });
  const warnings: string[] = [];
  await table.wakeUps!.open((message) => warnings.push(message));
  expect(table.wakeUps!.isOpen).toBe(false);
  expect(table.wakeUps!.state).toBe('interrupted');
  const role = (await table.doctor.checks('')).find(({ id }) => id === 'role');
  expect(role).toMatchObject({ state: 'bad', advice: expect.stringMatching(/standby/) });
  await eventually(() => expect(standby.log().match(/LISTEN/g)!.length).toBeGreaterThanOrEqual(2));
  await standby.promote();
  expect(await exchange(table, changeOf({}))).toMatchObject({ written: true });
  await eventually(() => expect(table.wakeUps!.isOpen).toBe(true));
  expect(warnings).toEqual([expect.stringMatching(/^Postgres waiters cannot be woken and poll instead: .*recovery/)]);
});
