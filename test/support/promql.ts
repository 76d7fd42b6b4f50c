/** A metric that an expression selects, with the labels of its matchers. */
export interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

export interface Mentions {
  readonly selectors: readonly Selector[];
  /** Labels for grouping and matching. */
  readonly grouping: readonly string[];
}

const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const OPERATORS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'inf', 'nan']);

/** Strings come first, so that their content does not match anything else, then brackets. */
const TOKEN =
  /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[a-zA-Z_:][\w:]*|\d+(?:\.\d+)?(?:[a-z]+)?|[(){},]|[^\s\w]+?/g;

/** Returns metrics and labels in a PromQL expression, which may contain Grafana variables in strings and ranges. */
export function mentionsOf(expression: string): Mentions {
  const tokens: readonly string[] = expression.match(TOKEN) ?? [];
  const selectors: Selector[] = [];
  const grouping: string[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] ?? '';
    const next = tokens[at + 1];
    if (!/^[a-zA-Z_:]/.test(token) || OPERATORS.has(token)) continue;
    if (GROUPING.has(token)) {
      if (next !== '(') continue;
      const end = tokens.indexOf(')', at);
      grouping.push(...tokens.slice(at + 2, end).filter((name) => name !== ','));
      at = end;
    } else if (next === '{') {
      const end = tokens.indexOf('}', at);
      const inside = tokens.slice(at + 2, end);
      selectors.push({ metric: token, labels: inside.filter((name) => /^[a-zA-Z_]/.test(name)) });
      at = end;
    } else if (next !== '(' && next !== 'by' && next !== 'without') {
      selectors.push({ metric: token, labels: [] });
    }
  }
  return { selectors, grouping };
}
