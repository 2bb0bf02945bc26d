import type ts from 'typescript';
import { edited, indentAt, nodesOf, parse, type TypeScript, Unusual } from './source.js';

/** The name, in its own file, of the class that main.ts gives to NestFactory. */
export function rootModuleName(typescript: TypeScript, main: string): string | undefined {
  const file = parse(typescript, main);
  const [argument] = factoryCalls(typescript, file)[0]?.arguments ?? [];
  if (!argument || !typescript.isIdentifier(argument)) return undefined;
  const specifiers = [...nodesOf(typescript, file)].filter((node) => typescript.isImportSpecifier(node));
  const imported = specifiers.find(({ name }) => name.text === argument.text);
  return imported?.propertyName?.text ?? argument.text;
}

/** main.ts with `app.enableShutdownHooks()` after the app is made. @throws {Unusual} if it is not clear where. */
export function addShutdownHooks(typescript: TypeScript, main: string): string {
  const file = parse(typescript, main);
  const isHooked = [...nodesOf(typescript, file)].some((node) => typescript.isIdentifier(node) && node.text === 'enableShutdownHooks');
  if (isHooked) return main;
  const calls = factoryCalls(typescript, file);
  const statement = calls[0] && statementOf(typescript, calls[0]);
  if (!statement || calls.length > 1) throw new Unusual('it does not make one app by `const app = await NestFactory.create(…)`');
  const { name } = statement.declarationList.declarations[0] as ts.VariableDeclaration;
  const end = statement.getText().endsWith(';') ? ';' : '';
  const at = typescript.getTrailingCommentRanges(main, statement.end)?.at(-1)?.end ?? statement.end;
  return edited(main, [{ at, text: `\n${indentAt(main, statement.getStart())}${name.getText()}.enableShutdownHooks()${end}` }]);
}

function factoryCalls(typescript: TypeScript, file: ts.SourceFile): ts.CallExpression[] {
  const calls = [...nodesOf(typescript, file)].filter((node) => typescript.isCallExpression(node));
  return calls.filter(({ expression }) => /^NestFactory\s*\.\s*create/.test(expression.getText()));
}

/** The statement `const app = await <call>`. */
function statementOf(typescript: TypeScript, call: ts.CallExpression): ts.VariableStatement | undefined {
  const { parent: awaited } = call;
  const { parent: declaration } = awaited;
  if (!typescript.isAwaitExpression(awaited) || !typescript.isVariableDeclaration(declaration)) return undefined;
  if (!typescript.isIdentifier(declaration.name)) return undefined;
  const { parent: list } = declaration;
  const { parent: statement } = list;
  return typescript.isVariableStatement(statement) && statement.declarationList.declarations.length === 1 ? statement : undefined;
}
