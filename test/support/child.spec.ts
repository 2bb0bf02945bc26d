import { forkChild, type Child } from './child.js';

type Message = { type: 'ready'; args: string[]; colour: string } | { type: 'echo'; text: string };

describe('a child process', () => {
  let child: Child<Message>;

  beforeEach(async () => {
    child = await forkChild<Message>('test/support/child.child.ts', { args: ['one', 'two'], env: { COLOUR: 'red' } });
  });
  afterEach(() => child.kill());

  it('runs a TypeScript file with arguments and environment, and talks', async () => {
    expect(await child.waitFor('ready')).toEqual({ type: 'ready', args: ['one', 'two'], colour: 'red' });
    child.send({ type: 'hello', text: 'world' });
    expect(await child.waitFor('echo')).toEqual({ type: 'echo', text: 'world' });
  });

  it('tells how it ended and what it wrote', async () => {
    await child.waitFor('ready');
    child.send({ type: 'exit', code: 3 });
    await expect(child.waitFor('echo')).rejects.toThrow(/ended.*"code":3.*leaving/s);
    expect(await child.exit).toEqual({ code: 3, signal: null });
  });

  it('does nothing while paused', async () => {
    await child.waitFor('ready');
    child.pause();
    child.send({ type: 'hello', text: 'paused' });
    await expect(child.waitFor('echo', { within: 100 })).rejects.toThrow("no message 'echo'");
    child.resume();
    expect(await child.waitFor('echo')).toEqual({ type: 'echo', text: 'paused' });
  });

  it('can be killed while paused', async () => {
    child.pause();
    expect(await child.kill()).toEqual({ code: null, signal: 'SIGKILL' });
  });
});
