import type { StatusCause } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import { andMore, listed } from '../schema/listed.ts';
import type { FieldPath } from './field-set.ts';
import { displayPath } from './field-set.ts';
import type { FieldManager } from './managed-fields.ts';

/** A field that another manager owns and that an apply would change. */
export interface Conflict {
  readonly manager: string;
  readonly operation: FieldManager['operation'];
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  readonly path: FieldPath;
}

/** What a 409 (reason `Conflict`) says of conflicts: its message and `details.causes`. */
export function describeConflicts(conflicts: readonly Conflict[]): {
  readonly message: string;
  readonly causes: StatusCause[];
} {
  const { items, texts, omitted } = listed(conflicts, ({ path }) => displayPath(path));
  const shown = items.map((conflict, index) => ({
    manager: displayManager(conflict),
    field: texts[index] ?? '',
  }));
  const causes = shown.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }));
  const [first] = shown;
  if (first && conflicts.length === 1) {
    const message = `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.field}`;
    return { message, causes };
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, field } of shown) {
    const fields = byManager.get(manager);
    if (fields) fields.push(field);
    else byManager.set(manager, [field]);
  }
  const lines = [...byManager.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, fields]) => `conflicts with ${manager}:\n- ${fields.join('\n- ')}`);
  const list = [...lines, ...andMore(omitted)].join('\n');
  const message = `Apply failed with ${conflicts.length} conflicts: ${list}`;
  return { message, causes };
}

/** `"kubectl" using apps/v1` for an update, `"helm"` for an apply. */
function displayManager(conflict: Conflict): string {
  const { manager, operation, apiVersion, subresource } = conflict;
  const part = subresource ? ` with subresource ${goQuote(subresource)}` : '';
  return `${goQuote(manager)}${part}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
