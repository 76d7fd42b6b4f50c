/**
 * Operators that generate faults which a careless change could introduce, as changes of the syntax tree. Faults
 * that do not compile are discarded.
 */
import type { Place, SourceFile, SyntaxNode } from './syntax.ts';
import { isNode, nodesIn, spanOf } from './syntax.ts';

/** A change of the text of a file. */
export interface Change {
  readonly operator: string;
  readonly start: number;
  readonly end: number;
  readonly put: string;
}

/** Returns the changes of all operators at a place. */
export function changesAt(place: Place, file: SourceFile): Change[] {
  const { node, ancestors } = place;
  const parent = ancestors.at(-1);
  if (parent === undefined) return [];
  if (isWording(place, file)) return node.type === 'NewExpression' ? otherErrors(node, file) : [];
  return [
    ...statementChanges(place, file),
    ...orderChanges(place, parent, file),
    ...listChanges(node, parent, place.field),
    ...expressionChanges(node, file),
    ...literalChanges(place, file),
    ...nameChanges(node, file),
  ].filter(({ start, end, put }) => file.text.slice(start, end) !== put);
}

function replaced(operator: string, node: SyntaxNode, put: string): Change {
  const [start, end] = spanOf(node);
  return { operator, start, end, put };
}

function statementChanges({ node, field, ancestors }: Place, file: SourceFile): Change[] {
  const text = (value: unknown) => (isNode(value) ? file.textOf(value) : '');
  const { alternate, test, expression, argument, finalizer, consequent } = node;
  // The compiler rejects an empty statement as a branch.
  const nothing = field === 'consequent' || field === 'alternate' ? '{}' : ';';
  switch (node.type) {
    case 'IfStatement':
      return [
        ...(isNode(test) ? [replaced('negate-condition', test, `!(${text(test)})`)] : []),
        ...(isNode(alternate)
          ? [
              replaced('drop-else', node, `if (${text(test)}) ${text(consequent)}`),
              replaced('drop-if', node, text(alternate)),
            ]
          : [replaced('drop-if', node, nothing), replaced('always', node, text(consequent))]),
      ];
    case 'ExpressionStatement': {
      const isAwaited = isNode(expression) && expression.type === 'AwaitExpression';
      return [
        replaced('drop-statement', node, nothing),
        ...(isAwaited
          ? [replaced('drop-await', node, `void ${text(expression['argument'])};`)]
          : []),
      ];
    }
    case 'ForOfStatement':
    case 'ThrowStatement':
    case 'ContinueStatement':
      return [replaced('drop-statement', node, nothing)];
    case 'TryStatement':
      return isNode(finalizer) ? [replaced('drop-finally', finalizer, '{}')] : [];
    case 'SwitchCase':
      return isNode(test) ? [replaced('drop-case', node, '')] : [];
    case 'ReturnStatement':
      return isNode(argument) ? constantResults(argument, file) : [];
    case 'ArrowFunctionExpression':
      return [];
    default:
      return field === 'body' && ancestors.at(-1)?.type === 'ArrowFunctionExpression'
        ? node.type === 'BlockStatement'
          ? []
          : constantResults(node, file)
        : [];
  }
}

/**
 * Swaps a statement with the next one, such as two writes. Declarations stay, because others use them, and so do the
 * statements of a constructor: they set fields that nothing reads meanwhile.
 */
function orderChanges({ node, ancestors }: Place, parent: SyntaxNode, file: SourceFile): Change[] {
  if (node.type !== 'ExpressionStatement' || ancestors.at(-2)?.['kind'] === 'constructor')
    return [];
  const statements = nodesIn(parent['body']);
  const next = statements[statements.indexOf(node) + 1];
  if (next?.type !== 'ExpressionStatement') return [];
  const [start, end] = [spanOf(node)[0], spanOf(next)[1]];
  const put = `${file.textOf(next)}\n${file.textOf(node)}`;
  return [{ operator: 'swap-statements', start, end, put }];
}

function constantResults(node: SyntaxNode, file: SourceFile): Change[] {
  return ['undefined', 'true', 'false', '[]']
    .filter((constant) => constant !== file.textOf(node))
    .map((constant) =>
      replaced(`return-${constant === '[]' ? 'empty' : constant}`, node, constant),
    );
}

/** Removes a member of an object or an array, or an argument; swaps two arguments. */
function listChanges(node: SyntaxNode, parent: SyntaxNode, field: string): Change[] {
  if (parent.type === 'ObjectExpression' && field === 'properties') {
    return [without('drop-property', node, nodesIn(parent['properties']))];
  }
  if (parent.type === 'ArrayExpression' && field === 'elements') {
    return [without('drop-element', node, nodesIn(parent['elements']))];
  }
  if (field === 'arguments') {
    const all = nodesIn(parent['arguments']);
    return node === all.at(-1) ? [without('drop-argument', node, all)] : [];
  }
  return [];
}

function without(operator: string, node: SyntaxNode, list: readonly SyntaxNode[]): Change {
  const at = list.indexOf(node);
  const [start, end] = spanOf(node);
  const next = list[at + 1];
  const previous = list[at - 1];
  if (next) return { operator, start, end: spanOf(next)[0], put: '' };
  if (previous) return { operator, start: spanOf(previous)[1], end, put: '' };
  return { operator, start, end, put: '' };
}

const OTHER_OPERATORS: Readonly<Record<string, readonly [operator: string, put: string][]>> = {
  '<': [
    ['boundary', '<='],
    ['reverse', '>'],
  ],
  '<=': [
    ['boundary', '<'],
    ['reverse', '>='],
  ],
  '>': [
    ['boundary', '>='],
    ['reverse', '<'],
  ],
  '>=': [
    ['boundary', '>'],
    ['reverse', '<='],
  ],
  '===': [['negate-equality', '!==']],
  '!==': [['negate-equality', '===']],
  '+': [['arithmetic', '-']],
  '-': [['arithmetic', '+']],
  '*': [['arithmetic', '/']],
  '/': [['arithmetic', '*']],
  '&&': [['logic', '||']],
  '||': [['logic', '&&']],
};

/** Functions with the same result for swapped arguments. */
const SYMMETRIC = /^(?:equal[A-Z]\w*|hasSame\w*|latest)$/;

function expressionChanges(node: SyntaxNode, file: SourceFile): Change[] {
  const { left, right, consequent, alternate, callee, argument } = node;
  const keep = (operator: string, part: unknown) =>
    isNode(part) ? [replaced(operator, node, bracketed(file.textOf(part)))] : [];
  switch (node.type) {
    case 'LogicalExpression':
    case 'BinaryExpression': {
      if (!isNode(left) || !isNode(right)) return [];
      const isPlus = /^(?:[-+*/]|&&|\|\||\?\?)$/.test(String(node['operator']));
      const others = OTHER_OPERATORS[String(node['operator'])] ?? [];
      return [
        ...others.map(([operator, put]) =>
          replaced(
            operator,
            node,
            `(${bracketed(file.textOf(left))} ${put} ${bracketed(file.textOf(right))})`,
          ),
        ),
        ...(isPlus ? [...keep('keep-left', left), ...keep('keep-right', right)] : []),
      ];
    }
    case 'AwaitExpression':
      return keep('drop-await', argument);
    case 'ConditionalExpression':
      return [...keep('keep-left', consequent), ...keep('keep-right', alternate)];
    case 'UnaryExpression':
      return node['operator'] === '!' ? keep('drop-not', argument) : [];
    case 'CallExpression':
    case 'OptionalCallExpression': {
      const [first, second] = nodesIn(node['arguments']);
      const [start, end] = spanOf(node);
      const swapped =
        first && second
          ? [
              {
                operator: 'swap-arguments',
                start: spanOf(first)[0],
                end: spanOf(second)[1],
                put: `${file.textOf(second)}, ${file.textOf(first)}`,
              },
            ]
          : [];
      const receiver = isNode(callee) ? callee['object'] : undefined;
      const isSymmetric = isNode(callee) && SYMMETRIC.test(file.textOf(callee));
      const isMath = isNode(receiver) && file.textOf(receiver) === 'Math';
      return [
        ...(isMath || isSymmetric ? [] : swapped),
        ...(isMath || !isNode(receiver) ? [] : keep('keep-receiver', receiver)),
        ...(isMath || !isNode(receiver) ? keep('keep-argument', first) : []),
        ...(isMath && second
          ? [{ operator: 'keep-second', start, end, put: bracketed(file.textOf(second)) }]
          : []),
      ];
    }
    default:
      return [];
  }
}

/** Replaces the class of an error by another one that the file constructs. */
function otherErrors({ callee }: SyntaxNode, file: SourceFile): Change[] {
  const isError = (text: string) => text.endsWith('Error');
  if (!isNode(callee) || !isError(file.textOf(callee))) return [];
  const classes = file.places
    .filter(({ node }) => node.type === 'NewExpression')
    .map(({ node }) => (isNode(node['callee']) ? file.textOf(node['callee']) : ''))
    .filter(isError);
  const others = [...new Set([...classes, 'Error'])];
  const other = others[(others.indexOf(file.textOf(callee)) + 1) % others.length];
  return other === undefined ? [] : [replaced('other-error', callee, other)];
}

function bracketed(text: string): string {
  return /^[\w.#?]+$/.test(text) ? text : `(${text})`;
}

function literalChanges({ node, field, ancestors }: Place, file: SourceFile): Change[] {
  if (field === 'key') return [];
  switch (node.type) {
    case 'NumericLiteral':
      return [
        replaced('increase', node, String(Number(node['value']) + 1)),
        // Milliseconds for seconds, KiB for bytes.
        ...(Number(node['value']) >= 10
          ? [replaced('wrong-unit', node, String(Number(node['value']) * 1000))]
          : []),
      ];
    case 'BooleanLiteral':
      return [replaced('flip', node, node['value'] === true ? 'false' : 'true')];
    case 'StringLiteral': {
      const scope = ancestors.findLast(({ type }) => /Function|Method/.test(type)) ?? ancestors[0];
      const text = file.textOf(node);
      const literals = file.places
        .filter((place) => place.node.type === 'StringLiteral' && place.field !== 'key')
        .filter((place) => scope === undefined || place.ancestors.includes(scope));
      const others = [...new Set(literals.map((place) => file.textOf(place.node)))];
      const other = others[(others.indexOf(text) + 1) % others.length];
      return other === undefined || other === text ? [] : [replaced('swap-string', node, other)];
    }
    default:
      return [];
  }
}

/** Members that are easily confused. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  uid: 'name',
  name: 'uid',
  namespace: 'name',
  resourceVersion: 'uid',
  generation: 'observedGeneration',
  labels: 'annotations',
  annotations: 'labels',
  creationTimestamp: 'deletionTimestamp',
  deletionTimestamp: 'creationTimestamp',
  replicas: 'readyReplicas',
  readyReplicas: 'replicas',
  availableReplicas: 'readyReplicas',
  updatedReplicas: 'readyReplicas',
  reason: 'message',
  message: 'reason',
  startTime: 'lastTransitionTime',
  min: 'max',
  max: 'min',
  some: 'every',
  every: 'some',
  shift: 'pop',
  pop: 'shift',
  push: 'unshift',
  unshift: 'push',
  find: 'findLast',
  findLast: 'find',
  add: 'delete',
  has: 'delete',
  monotonic: 'now',
};

function nameChanges(node: SyntaxNode, file: SourceFile): Change[] {
  const { property } = node;
  if (!node.type.endsWith('MemberExpression') || node['computed'] === true || !isNode(property)) {
    return [];
  }
  const other = OTHER_NAMES[file.textOf(property)];
  return other === undefined ? [] : [replaced('swap-member', property, other)];
}

/** Returns whether a place affects only the text of a log line or an error message. */
function isWording({ node, ancestors }: Place, file: SourceFile): boolean {
  return [...ancestors, node].some((current) => {
    const outer = current.type === 'ExpressionStatement' ? current['expression'] : current;
    if (!isNode(outer) || !isNode(outer['callee'])) return false;
    const callee = file.textOf(outer['callee']);
    if (outer.type === 'NewExpression') return callee.endsWith('Error');
    return /(?:^|[.#])log(?:ger)?\b\s*[?.][\w\s.?()]*$|^console\./.test(callee);
  });
}
