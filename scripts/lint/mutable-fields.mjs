// Counts the fields of a class that change: those that are not readonly, and are no method. With many of them nobody knows in which states it can be.
const DEFAULT = 8;

const isMutable = ({ type, readonly, static: isStatic, value, accessibility }) => {
  if (type === 'TSParameterProperty') return !readonly && accessibility !== undefined;
  return type === 'PropertyDefinition' && !readonly && !isStatic && value?.type !== 'ArrowFunctionExpression';
};

/** Option: the exact numbers of classes that have more, by their names: they fall with the class. */
const maxMutableFields = {
  meta: {
    type: 'suggestion',
    schema: [{ type: 'object', additionalProperties: { type: 'integer' } }],
    messages: { many: '{{name}} has {{count}} fields that change, and may have {{most}}: name its states, or divide it.' },
  },
  create(context) {
    const [exceptions = {}] = context.options;
    return {
      ClassBody({ body, parent }) {
        const name = parent.id?.name ?? 'A class';
        const made = body.find(({ kind }) => kind === 'constructor')?.value.params ?? [];
        const count = [...body, ...made].filter(isMutable).length;
        const most = exceptions[name] ?? DEFAULT;
        if (name in exceptions ? count !== most : count > most)
          context.report({ node: parent, messageId: 'many', data: { name, count, most } });
      },
    };
  },
};

export default { rules: { 'max-mutable-fields': maxMutableFields } };
