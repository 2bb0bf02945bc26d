// ESLint rules for tests: a test must not depend on how fast or how busy the machine is. CONTRIBUTING.md has the reasons.

const VIRTUAL = /(^|\/)virtual-time\.js$/;
/** Names of what holds a measured time, where the measuring itself is in another file. */
const MEASURED = /^(took|elapsed\w*|duration|since|waited|lateness|longest|timeOf|timeToEnd|millis\w*)$/;
const CLOCKS = new Set(['performance.now', 'Date.now', 'process.hrtime', 'process.hrtime.bigint', 'process.uptime']);
/** The shortest lease and request timeout on a real clock, milliseconds. */
const SHORTEST = { keyTimeout: 5_000, ttl: 5_000, requestTimeout: 2_000 };
/** Functions that take a time limit as their last argument. */
const LIMITED = /^(it|test|beforeAll|beforeEach|afterAll|afterEach)$/;
/** Milliseconds; the same as in jest.config.js. */
const TEST_TIMEOUT = 120_000;

const isVirtual = (program) => program.body.some((node) => node.type === 'ImportDeclaration' && VIRTUAL.test(node.source.value));

/** Reports nothing in a file on virtual time. */
const onRealTime = (create) => (context) => (isVirtual(context.sourceCode.ast) ? {} : create(context));

/** `a.b.c` of plain member expressions. */
function nameOf(node) {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'MemberExpression' && !node.computed ? `${nameOf(node.object)}.${node.property.name}` : '';
}

/** `it` of `it.each(table)(…)`. */
const rootOf = (node) => (node.type === 'Identifier' ? node : rootOf(node.callee ?? node.object ?? node.tag ?? { type: 'Identifier' }));

function variableOf(context, node) {
  for (let scope = context.sourceCode.getScope(node); scope; scope = scope.upper) {
    const found = scope.set.get(node.name);
    if (found) return found;
  }
  return undefined;
}

/** Whether an expression comes from a clock: by itself, by the variables and functions of its file, or by its name. */
function isMeasured(context, node, seen = new Set()) {
  if (!node || typeof node.type !== 'string' || seen.has(node)) return false;
  seen.add(node);
  if (node.type === 'CallExpression' && CLOCKS.has(nameOf(node.callee))) return true;
  if (node.type === 'Identifier') {
    if (MEASURED.test(node.name)) return true;
    const { defs = [], references = [] } = variableOf(context, node) ?? {};
    // Not of what is taken apart: the other parts of it may be no times.
    const values = references.filter(({ identifier: { parent }, identifier }) => parent.id === identifier || parent.left === identifier);
    const bodies = defs.filter(({ type }) => type === 'FunctionName').map(({ node: definition }) => definition.body);
    return [...values.map(({ writeExpr }) => writeExpr), ...bodies].some((value) => isMeasured(context, value, seen));
  }
  if (node.type === 'MemberExpression')
    return isMeasured(context, node.object, seen) || (!node.computed && MEASURED.test(node.property.name));
  const children = (context.sourceCode.visitorKeys[node.type] ?? []).flatMap((key) => node[key]);
  return children.some((child) => child && isMeasured(context, child, seen));
}

const upperBound = onRealTime((context) => ({
  'CallExpression[callee.property.name=/^toBe(Less|Greater)Than(OrEqual)?$/]'(node) {
    let { object, property } = node.callee;
    if (object.type === 'MemberExpression') ({ object } = object); // expect(…).not
    if (object.type !== 'CallExpression') return;
    const [actual, expected] = [object.arguments, node.arguments].map((parts) => parts.some((part) => isMeasured(context, part)));
    // `expect(500).toBeGreaterThan(took)` says the same; otherwise the time is a lower bound.
    const isReversed = object.arguments[0]?.type === 'Literal' && expected;
    if (property.name.startsWith('toBeLess') ? actual || expected : isReversed) context.report({ node, messageId: 'bound' });
  },
  "CallExpression[callee.name='eventually'] > ObjectExpression > Property[key.name='within']": (node) =>
    context.report({ node, messageId: 'within' }),
  "CallExpression[callee.property.name='waitFor'] > ObjectExpression > Property[key.name='within']": (node) =>
    context.report({ node, messageId: 'within' }),
  CallExpression(node) {
    const isOfAll = nameOf(node.callee) === 'jest.setTimeout';
    if (!isOfAll && !(LIMITED.test(rootOf(node.callee).name) && node.arguments.length > 1)) return;
    if (numberOf(context, node.arguments.at(-1)) < TEST_TIMEOUT) context.report({ node: node.arguments.at(-1), messageId: 'timeout' });
  },
}));

const sleep = onRealTime((context) => ({
  'CallExpression[callee.name=/^(pause|sleep|delay|signalAfter|setTimeout|setInterval)$/]': (node) =>
    context.report({ node, messageId: 'sleep' }),
  "CallExpression[callee.object.name='AbortSignal'][callee.property.name='timeout']": (node) =>
    context.report({ node, messageId: 'sleep' }),
  "ImportDeclaration[source.value='node:timers/promises']": (node) => context.report({ node, messageId: 'sleep' }),
}));

/** The value of a number, of a product of numbers, or of a constant of this file; otherwise NaN. */
function numberOf(context, node) {
  if (node?.type === 'Literal') return typeof node.value === 'number' ? node.value : NaN;
  if (node?.type === 'BinaryExpression') {
    const [left, right] = [numberOf(context, node.left), numberOf(context, node.right)];
    return { '*': left * right, '+': left + right, '-': left - right, '/': left / right }[node.operator] ?? NaN;
  }
  if (node?.type !== 'Identifier') return NaN;
  const definition = variableOf(context, node)?.defs[0];
  return definition?.type === 'Variable' && definition.parent.kind === 'const' ? numberOf(context, definition.node.init) : NaN;
}

const shortLease = onRealTime((context) => ({
  'ObjectExpression > Property'(node) {
    const shortest = Object.hasOwn(SHORTEST, node.key.name) ? SHORTEST[node.key.name] : 0;
    if (numberOf(context, node.value) < shortest) context.report({ node, messageId: 'short', data: { name: node.key.name, shortest } });
  },
}));

const rule = (create, messages) => ({ meta: { type: 'problem', messages, schema: [] }, create });

export default {
  rules: {
    'no-upper-bound-on-time': rule(upperBound, {
      bound: 'A busy machine exceeds an upper bound on real time. Make the other outcome impossible, or use virtual time.',
      within: 'A busy machine exceeds `within`: the time limit of the test is the only one. Leave it out, or use virtual time.',
      timeout: `A time limit below the ${TEST_TIMEOUT} ms of jest.config.js is an upper bound on real time.`,
    }),
    'no-sleep': rule(sleep, {
      sleep: 'Wait for a fact by eventually(), or show that something does not happen by staysTrue(); or use virtual time.',
    }),
    'no-short-lease': rule(shortLease, {
      short:
        'On a real clock {{name}} is at least {{shortest}} ms: a busy machine outlasts less. Use virtual time, or add the file to the faults of test/tiers.json.',
    }),
  },
};
