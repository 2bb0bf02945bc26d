// `ndl ui` serves the dashboard, and `ndl hold` keeps a key taken.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { EXIT } from '../../lib/cli/failure.js';
import { ndlHere, startHere } from '../support/cli.js';
import { documentIn, errorIn, hold, useRedis } from './setting.js';

const redis = useRedis();

describe('ndl ui', () => {
  const HEADERS = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json', 'x-lock-dashboard': '1' };

  it('serves the page, shows the keys of other processes, releases one, and ends', async () => {
    const running = startHere(['ui', '--url', redis.url]);
    const url = await running.says(/http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}/);
    const page = await fetch(`${url}/`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringMatching(/^<!doctype html>/i)]);
    const lease = await hold(redis.service(), 'order:42', 'Orders.pay');
    const state = await fetch(`${url}/state`, { headers: HEADERS });
    expect(await state.json()).toMatchObject({ rows: [{ key: 'order:42' }] });
    const answer = await fetch(`${url}/key?store=default&key=order:42`, { headers: HEADERS });
    const { holders } = (await answer.json()) as { holders: { owner: string; token: number }[] };
    const { owner, token } = holders[0]!;
    const body = JSON.stringify({ store: 'default', key: 'order:42', owner, token, reason: 'it hangs', grace: 5000, keepFor: 0 });
    const released = await fetch(`${url}/release`, { method: 'POST', headers: HEADERS, body });
    expect(await released.json()).toMatchObject({ outcome: 'gave back' });
    expect(lease.signal.reason).toMatchObject({ message: expect.stringContaining('it hangs') });
    running.signal('SIGINT');
    expect(await running.ended).toMatchObject({ code: EXIT.ok });
    await expect(fetch(url)).rejects.toThrow();
  });

  it('ends by a signal that comes before it listens', async () => {
    const running = startHere(['ui', '--url', redis.url]);
    running.signal('SIGTERM');
    expect(await running.ended).toMatchObject({ code: EXIT.ok, stderr: '' });
  });

  it('2: a port that is none, or that another program has', async () => {
    for (const port of ['99999', String(redis.server.port)])
      expect(await ndlHere(['ui', '--url', redis.url, '--port', port])).toMatchObject({
        code: EXIT.usage,
        stderr: expect.stringMatching(/^--port.*\n$/),
      });
  });

  it('answers nobody who does not know its address, and no other site', async () => {
    const running = startHere(['ui', '--url', redis.url, '--json']);
    const line = await running.says(/.*\n/);
    const { url } = documentIn(line, 'ui');
    const { origin } = new URL(url);
    for (const path of ['/', '/state', '/key?store=default&key=a', `/${'x'.repeat(24)}/`])
      expect((await fetch(origin + path)).status).toBe(404);
    for (const path of ['/state', '/key?store=default&key=a']) {
      expect((await fetch(url + path, { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    }
    const named = request(`${url}/key?store=default&key=a`, { headers: { ...HEADERS, host: 'evil.example.com' } }).end();
    const [refused] = (await once(named, 'response')) as [IncomingMessage];
    expect([refused.statusCode, refused.resume().headers['cache-control']]).toEqual([403, 'no-store']);
    expect((await fetch(`${url}/release`, { method: 'POST', body: '{}' })).status).toBe(403);
    expect((await fetch(`${url}/release`, { method: 'POST', headers: HEADERS, body: '{' })).status).toBe(400);
    expect((await fetch(`${url}/release`, { method: 'POST', headers: HEADERS, body: `"${'x'.repeat(70_000)}"` })).status).toBe(413);
    running.signal('SIGINT');
    await running.ended;
  });
});

describe('ndl hold', () => {
  const on = (...args: string[]) => ndlHere(['hold', 'deploy', '--url', redis.url, ...args]);

  it('keeps a free key taken, and who is refused learns why', async () => {
    const { code, stdout } = await on('--for', '2h', '--reason', 'incident 812', '--json');
    const { owner, until } = documentIn(stdout, 'hold');
    expect(code).toBe(EXIT.ok);
    expect(owner).toMatch(/^ndl:incident-812@/);
    const left = new Date(until).getTime() - Date.now();
    expect(left).toBeGreaterThan(7_100_000);
    const locks = redis.service();
    expect(await locks.acquire('deploy', { waitTimeout: 0 }).catch((error: unknown) => error)).toMatchObject({ holder: owner });
    const report = await locks.inspect('deploy');
    expect(report.holders).toMatchObject([{ owner, phase: 'kept' }]);
    expect(report.remaining).toBeGreaterThan(7_100_000);
  });

  it.each(['deploy', '-foo', '--json'])('prints the line that frees the key: %s', async (key) => {
    const { stdout } = await ndlHere(['hold', '--url', redis.url, '--for', '2h', '--reason', 'incident 812', '--', key]);
    const [, words] = /ndl release (.*)/.exec(stdout)!;
    const line = words!.replace('--url …', `--url ${redis.url}`).replaceAll("'", '');
    expect((await ndlHere(['release', '--yes', ...line.split(' ')])).code).toBe(EXIT.ok);
    await redis.service().acquire(key, { waitTimeout: 0 });
  });

  it('75: it is taken; 2: no time, no reason', async () => {
    await hold(redis.service(), 'deploy');
    const taken = await on('--for', '2h', '--reason', 'incident 812', '--json');
    expect([taken.code, errorIn(taken.stderr).code]).toEqual([75, 'TAKEN']);
    expect((await on('--reason', 'incident 812')).code).toBe(2);
    expect((await on('--for', '2h')).code).toBe(2);
  });
});
