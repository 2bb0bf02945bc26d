import { forkChild, type Child } from '../../support/child.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { HistoryWriter } from '../history/writer.js';
import type { Stage } from '../stores/store.js';
import type { FromWorker, WorkerOrder } from '../worker/order.js';

export interface SlotOptions extends Omit<WorkerOrder, 'id' | 'seed' | 'target' | 'resource'> {
  index: number;
  seed: string;
  env?: NodeJS.ProcessEnv;
}

/** ms in which a worker that was asked to close must be gone, however long its closing is allowed to take. */
const LONGEST_END = 20_000;

/** A slot for one worker at a time: a killed one is replaced. */
export class Slot {
  /** pids */
  readonly killed: number[] = [];
  name = '';
  private generation = 0;
  private current: Child<FromWorker> | undefined;
  private replacing: Promise<void> | undefined;

  constructor(
    private readonly options: SlotOptions,
    private readonly stage: Stage,
    private readonly resource: RedisServer,
    private readonly history: HistoryWriter,
  ) {}

  get child(): Child<FromWorker> {
    return this.current!;
  }

  async start(): Promise<void> {
    const { index, seed, env, ...order } = this.options;
    const name = `w${index}.${++this.generation}`;
    const whole: WorkerOrder = {
      ...order,
      id: name,
      seed: `${seed}/${name}`,
      target: this.stage.target(index),
      resource: this.resource.connection,
    };
    const child = await forkChild<FromWorker>('test/chaos/worker/worker.ts', { args: [JSON.stringify(whole)], env });
    await child.waitFor('ready', { within: 30_000 });
    this.name = name;
    this.current = child;
    void child.exit.then(({ code, signal }) => {
      const expected = this.killed.includes(child.pid) || (this.isClosing && code === 0);
      const detail = `code ${code}, signal ${signal}${expected ? '' : `\n${child.output().slice(-2_000)}`}`;
      this.history.write({ e: 'exit', worker: name, expected, detail });
    });
  }

  /** The old one is gone at once; what strikes the slot meanwhile strikes a dead one. */
  async replace(): Promise<void> {
    this.replacing ??= this.doReplace().finally(() => (this.replacing = undefined));
    await this.replacing;
  }

  async close(): Promise<void> {
    await this.replacing;
    this.isClosing = true;
    this.child.resume();
    if (this.child.running) this.child.send({ type: 'stop' });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, LONGEST_END)));
    await Promise.race([this.child.exit, late]);
    clearTimeout(timer);
    if (this.child.running)
      this.history.write({ e: 'exit', worker: this.name, expected: false, detail: `still there after ${LONGEST_END} ms` });
  }

  async discard(): Promise<void> {
    await this.replacing?.catch(() => undefined);
    if (!this.current?.running) return;
    this.killed.push(this.current.pid);
    await this.current.kill();
  }

  private isClosing = false;

  private async doReplace(): Promise<void> {
    const { child, name } = this;
    this.killed.push(child.pid);
    this.history.write({ e: 'killed', worker: name });
    await child.kill();
    await this.start();
  }
}
