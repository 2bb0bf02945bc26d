// The floors of lib (see ARCHITECTURE.md): a floor imports only lower floors, and a database client only inside its own store.

/** The packages that each store may import: its client. A store that is not named here may import none. */
const clients = { redis: ['ioredis'], postgres: ['pg'], mysql: ['mysql2'], zookeeper: ['node-zookeeper-client'] };
/** Packages that the Nest floor may import. */
const nestPeers = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];
/** What the parts of the outer ring may import of the inner one. */
const innerApi = ['^lib/core/(model|store|util)/', '^lib/operate/', '^lib/stores/records/', '^lib/locks\\.ts$'];
/** The outer ring: what some apps add. Each with what else it imports. */
const outerRing = {
  observe: ['^lib/nest/distributed-lock\\.tokens\\.ts$'],
  cli: ['^lib/stores/[^/]+/[^/]+\\.store\\.ts$', '^lib/dashboard/(?!dashboard\\.module)'],
  'fence-guard': ['^lib/core/holding/(call-chain|held-lease)\\.ts$'],
  dashboard: ['^lib/nest/lock-registry\\.ts$'],
  'stores/quorum': [],
  'stores/etcd': [],
  'stores/zookeeper': [],
};
/** The entries of lib/observe. */
const observers = ['prometheus\\.ts', 'opentelemetry/', 'lock-health\\.indicator\\.ts'];

/** The packages that each of them may import. */
const peersOfObservers = { 'prometheus\\.ts': ['prom-client'], 'opentelemetry/': ['@opentelemetry/api'] };

/** Folders of lib/core, the lowest first. */
const coreFloors = ['util', 'model', 'store', 'holding', 'waiting'];
/** Folders of the store on Redis, each with those below it. Beside them are texts that all of them use. */
const redisFloors = {
  connection: ['connection'],
  'node-redis': ['connection', 'node-redis'],
  waiting: ['connection', 'waiting'],
  scripts: ['connection', 'waiting', 'scripts'],
};
const redisTexts = '^lib/stores/redis/(redis\\.values|lua\\.generated|clients\\.d)\\.c?ts$|^lib/stores/redis/clients\\.cjs$';

const anyOf = (names) => `(${names.map((name) => name.replaceAll('.', '\\.')).join('|')})`;
const inNodeModules = (names) => `(^|/)node_modules/(@types/)?${anyOf(names)}/`;
const packages = 'node_modules/';

const floor = (name, from, mayImport, comment) => ({
  name,
  comment,
  severity: 'error',
  from: { path: from },
  to: { pathNot: mayImport, dependencyTypesNot: ['core'] },
});

module.exports = {
  forbidden: [
    {
      name: 'no-cycle',
      comment: 'A reader follows a call downwards only. Types of one folder may name each other.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'An import that leads nowhere would escape every rule below.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'lib-stands-alone',
      comment: 'What ships does not know its tests, its sample or its benchmarks.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(test|sample-app|bench|scripts|dist)/' },
    },
    {
      name: 'no-deep-nest',
      comment: 'Only what a Nest package exports at its root stays the same from Nest 10 to 12.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '(^|/)node_modules/@nestjs/[^/]+/(?!(dist/)?index\\.(js|d\\.ts)$)|^@nestjs/[^/]+/.' },
    },

    // Arrows inside of core point down, too.
    ...coreFloors.map((name, index) =>
      floor(
        `core-${name}`,
        `^lib/core/${name}/`,
        `^lib/core/${anyOf(coreFloors.slice(0, index + 1))}/`,
        'The engine knows only Node, itself and what is below.',
      ),
    ),
    floor('core-telemetry', '^lib/core/telemetry/', '^lib/core/', 'It sees the engine, which does not know it.'),
    floor('floor-1-primitives', '^lib/primitives/', '^lib/(core|primitives)/', 'A primitive is written once over drivers: core only.'),
    floor(
      'floor-1-latch',
      '^lib/latch/',
      '^lib/(core|latch)/',
      'Nobody holds a latch: it shares with leases what asks a store, and no more.',
    ),
    floor(
      'floor-1-stores',
      '^lib/stores/([^/]+)/',
      ['^lib/core/', '^lib/stores/$1/', '^lib/stores/records/', packages],
      'A store knows core and itself; `records/` is what all stores but Redis share.',
    ),
    ...Object.entries(redisFloors).map(([name, below]) =>
      floor(
        `redis-${name}`,
        `^lib/stores/redis/${name}/`,
        ['^lib/core/', `^lib/stores/redis/${anyOf(below)}/`, redisTexts, packages],
        'A connection knows no script, and a script no question of operators.',
      ),
    ),
    {
      name: 'redis-shares-nothing',
      comment: 'Redis answers by scripts of its own.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/(stores/(records|memory|postgres|mysql|etcd|zookeeper|file)|testing/store)/' },
      to: { path: '^lib/stores/records/' },
    },
    ...Object.entries(clients).map(([store, names]) => ({
      name: `client-of-${store}`,
      comment: `${names.join(', ')} is an optional peer: whoever does not use this store must be able to do without it.`,
      severity: 'error',
      from: { path: '^lib/', pathNot: `^lib/stores/${store}/` },
      to: { path: inNodeModules(names) },
    })),
    {
      name: 'no-package',
      comment: 'These bring no package along.',
      severity: 'error',
      from: { path: '^lib/(cli|fence-guard)/' },
      to: { path: packages, dependencyTypesNot: ['core'] },
    },
    {
      name: 'stores-only-client',
      comment: 'A store imports no package but its own client.',
      severity: 'error',
      from: { path: '^lib/stores/' },
      to: { path: packages, pathNot: inNodeModules(Object.values(clients).flat()), dependencyTypesNot: ['core'] },
    },
    floor('floor-1-operate', '^lib/operate/', '^lib/(core|operate)/', 'What operators ask. It is loaded by the first question.'),
    {
      name: 'operate-loads-late',
      comment: 'A process that no operator asks does not load the answers. The wait graph is a function of its own.',
      severity: 'error',
      from: { path: '^lib/(?!operate/|cli/)' },
      to: { path: '^lib/operate/(?!wait-graph)', dynamic: false, dependencyTypesNot: ['type-only'] },
    },
    floor(
      'floor-2-locks',
      '^lib/locks\\.ts$',
      '^lib/(core|primitives|latch|operate)/',
      'Locks builds every primitive over one store, whichever it is.',
    ),
    floor(
      'floor-3-nest',
      '^lib/nest/',
      ['^lib/(core|primitives|nest)/', '^lib/locks\\.ts$', inNodeModules(nestPeers)],
      'The Nest floor takes a store as a value: it imports none, and no barrel.',
    ),
    floor(
      'entry-core-of-nest',
      '^lib/nest/(standby/|distributed-lock\\.tokens\\.ts$)',
      ['^lib/(core|primitives|nest/standby)/', '^lib/locks\\.ts$'],
      'For Nest apps, and without Nest: the entry `./core` has them.',
    ),
    floor(
      'entry-core',
      '^lib/core\\.ts$',
      ['^lib/(core|operate|primitives|latch|nest/standby)/', '^lib/(locks|nest/distributed-lock\\.tokens)\\.ts$'],
      'The entry without Nest loads where no Nest is installed.',
    ),
    floor(
      'entry-index',
      '^lib/index\\.ts$',
      ['^lib/(core|primitives|latch|nest)/', '^lib/locks\\.ts$'],
      'The Nest entry loads no store: users pass one in.',
    ),
    {
      name: 'barrels-are-for-users',
      comment: 'Inside lib everyone imports from the file that has it.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^lib/(index|core)\\.ts$' },
    },
    ...Object.entries(peersOfObservers).map(([entry, names]) => ({
      name: `peer-of-${entry}`,
      comment: `${names.join(', ')} is an optional peer: programs that do not use this entry must load without it.`,
      severity: 'error',
      from: { path: '^lib/', pathNot: `^lib/observe/${entry}` },
      to: { path: inNodeModules(names) },
    })),
    {
      name: 'inner-ring',
      comment: 'What every app loads knows nothing of what some apps add: each part of the outer ring can be removed.',
      severity: 'error',
      from: { path: '^lib/', pathNot: `^lib/${anyOf(Object.keys(outerRing))}/` },
      to: { path: `^lib/${anyOf(Object.keys(outerRing))}/` },
    },
    ...Object.entries(outerRing).map(([part, exceptions]) => ({
      name: `outer-ring-${part.replace('/', '-')}`,
      comment: 'A part of the outer ring knows of the inner one what the author of any other part may use, and nothing of another part.',
      severity: 'error',
      from: { path: `^lib/${part}/` },
      to: { path: '^lib/', pathNot: [`^lib/${part}/`, ...innerApi, ...exceptions] },
    })),
    {
      name: 'testing-on-top',
      comment: 'No other part of the library knows of what tests use.',
      severity: 'error',
      from: { path: '^lib/(?!testing/)' },
      to: { path: '^lib/testing/' },
    },
    ...observers.map((entry) => ({
      name: `observer-on-top-${entry}`,
      comment: 'Neither Locks nor the table of metrics loads an entry of telemetry, whose package may not be installed.',
      severity: 'error',
      from: { path: '^lib/', pathNot: `^lib/observe/${entry}` },
      to: { path: `^lib/observe/${entry}` },
    })),
    floor(
      'floor-4-dashboard',
      '^lib/dashboard/(?!dashboard\\.(module|options)|basic-auth|page/)',
      ['^lib/(core|dashboard|operate)/', '^lib/locks\\.ts$'],
      'The command line serves it where no Nest is.',
    ),
    floor(
      'floor-4-dashboard-page',
      '^lib/dashboard/page/',
      ['^lib/(core/model|dashboard/page)/', '^lib/dashboard/dashboard\\.protocol\\.ts$', inNodeModules(['lit-html'])],
      'It runs in a browser.',
    ),
    floor(
      'floor-4-contracts',
      '^lib/testing/store[./]',
      ['^lib/stores/records/', '^lib/testing/store[./]'],
      'The contracts know the library, and no test runner.',
    ),
    {
      name: 'contracts-alone',
      comment: 'They are for the authors of stores.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/testing/store[./]' },
      to: { path: '^lib/testing/store[./]' },
    },
    {
      name: 'cli-loads-late',
      comment: 'It loads only the store that is asked for, whose client may be the only one that is installed; and nothing for --help.',
      severity: 'error',
      from: { path: '^lib/cli/' },
      to: { path: ['^lib/stores/', '^lib/locks\\.ts$'], dynamic: false, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-stranger',
      comment: 'Every file of lib is on a floor: name a new folder here before it is written.',
      severity: 'error',
      from: {
        path: '^lib/',
        pathNot: `^lib/((core|operate|primitives|latch|stores|nest|testing)/|${anyOf(Object.keys(outerRing))}/|(index|core|locks)\\.ts$)`,
      },
      to: {},
    },
    {
      name: 'no-orphan',
      comment: 'A file that no entry leads to is dead.',
      severity: 'error',
      from: { orphan: true, path: '^lib/', pathNot: '\\.d\\.c?ts$' },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      mainFields: ['module', 'main', 'types'],
    },
  },
};
