// Counts the fields of a class that change: those that are not readonly, and are no method. With many of them nobody knows in which states it can be.
const MOST = 8;

const isMutable = ({ type, readonly, static: isStatic, value, accessibility }) => {
  if (type === 'TSParameterProperty') return !readonly && accessibility !== undefined;
  return type === 'PropertyDefinition' && !readonly && !isStatic && value?.type !== 'ArrowFunctionExpression';
};

const maxMutableFields = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { many: '{{name}} has {{count}} fields that change, and may have {{most}}: name its states, or divide it.' },
  },
  create(context) {
    return {
      ClassBody({ body, parent }) {
        const made = body.find(({ kind }) => kind === 'constructor')?.value.params ?? [];
        const count = [...body, ...made].filter(isMutable).length;
        const data = { name: parent.id?.name ?? 'A class', count, most: MOST };
        if (count > MOST) context.report({ node: parent, messageId: 'many', data });
      },
    };
  },
};

export default { rules: { 'max-mutable-fields': maxMutableFields } };
