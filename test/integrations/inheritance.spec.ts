import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { count, Counter, expectOneAtATime, PATIENT } from './counter.js';
import { key, way } from './place.js';

way('Inheritance', 'a subclass inherits the method', () => {
  it('is locked by the key of the class that declares it', async () => {
    @Injectable()
    class SubCounter extends Counter {}
    const booted = await boot({ providers: [Counter, SubCounter] });
    await expectOneAtATime(booted, booted.get(Counter), booted.get(SubCounter));
  });
});

way('Inheritance', 'a subclass overrides it without the decorator', () => {
  it('is locked as far as super is called', async () => {
    const ran: string[] = [];
    @Injectable()
    class Calling extends Counter {
      override async count() {
        ran.push(key());
        return super.count();
      }
    }
    @Injectable()
    class Silent extends Counter {
      override async count() {
        ran.push(key());
        return 0;
      }
    }
    const booted = await boot({ providers: [Calling, Silent] });
    await booted.get(Silent).count();
    expect([booted.acquired, ran]).toEqual([[], ['unlocked']]);
    await expectOneAtATime(booted, booted.get(Calling));
    expect(new Set(ran)).toEqual(new Set(['unlocked']));
  });
});

way('Inheritance', 'a subclass overrides it with a decorator of its own, and calls super', () => {
  it('has both locks where the keys differ', async () => {
    const ran: string[] = [];
    class Base {
      @DistributedLock(PATIENT)
      async run() {
        ran.push(key());
        return 'base';
      }
    }
    @Injectable()
    class Sub extends Base {
      @DistributedLock(PATIENT)
      override async run() {
        ran.push(key());
        return `sub of ${await super.run()}`;
      }
    }
    const booted = await boot({ providers: [Sub] });
    expect(await booted.get(Sub).run()).toBe('sub of base');
    expect(ran).toEqual(['Sub.run-locks', 'Base.run-locks']);
    expect(booted.acquired).toEqual(ran);
  });
});

way('Inheritance', 'an abstract base', () => {
  it('is locked around what the subclass implements', async () => {
    abstract class Job {
      @DistributedLock({ value: 'count', ...PATIENT })
      async count() {
        return this.work();
      }
      protected abstract work(): Promise<number>;
    }
    @Injectable()
    class CountingJob extends Job {
      protected work() {
        return count();
      }
    }
    const booted = await boot({ providers: [CountingJob] });
    await expectOneAtATime(booted, booted.get(CountingJob));
  });
});

way('Inheritance', 'a generic base', () => {
  it('is locked by one key, or by one for each subclass if the key says so', async () => {
    abstract class Repository<T> {
      readonly saved: [T, string][] = [];
      @DistributedLock(PATIENT)
      async save(item: T): Promise<T> {
        this.saved.push([item, key()]);
        return item;
      }
      @DistributedLock({ value: 'truncate', key: (table: string) => table, ...PATIENT })
      async truncate(_table: string): Promise<void> {
        this.saved.splice(0);
      }
    }
    @Injectable()
    class Apples extends Repository<{ kind: string }> {}
    @Injectable()
    class Numbers extends Repository<number> {}
    const { get, acquired } = await boot({ providers: [Apples, Numbers] });
    await get(Apples).save({ kind: 'red' });
    await get(Numbers).save(1);
    await get(Numbers).truncate('numbers');
    expect(get(Apples).saved).toEqual([[{ kind: 'red' }, 'Repository.save-locks']]);
    expect(get(Numbers).saved).toEqual([]);
    expect(acquired).toEqual(['Repository.save-locks', 'Repository.save-locks', 'truncate-numbers-locks']);
  });
});

way('Inheritance', 'a mixin', () => {
  it('is locked in each class that is made from it', async () => {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- what TypeScript wants of a mixin's constructor
    function Counting<B extends new (...args: any[]) => object>(Base: B) {
      class CountingBase extends Base {
        @DistributedLock({ value: 'count', ...PATIENT })
        async count() {
          return count();
        }
      }
      return CountingBase;
    }
    @Injectable()
    class Apples extends Counting(class {}) {}
    @Injectable()
    class Pears extends Counting(class {}) {}
    const booted = await boot({ providers: [Apples, Pears] });
    await expectOneAtATime(booted, booted.get(Apples), booted.get(Pears));
  });
});

way('Inheritance', 'a method that is named by a symbol', () => {
  const RUN = Symbol('run');

  it('is locked by the description of the symbol', async () => {
    @Injectable()
    class Job {
      @DistributedLock(PATIENT)
      async [RUN]() {
        return key();
      }
    }
    @Injectable()
    class SubJob extends Job {}
    const { get, acquired } = await boot({ providers: [Job, SubJob] });
    expect([await get(Job)[RUN](), await get(SubJob)[RUN]()]).toEqual(['Job.run-locks', 'Job.run-locks']);
    expect(acquired).toEqual(['Job.run-locks', 'Job.run-locks']);
  });
});
