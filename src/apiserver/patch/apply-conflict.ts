import type { StatusCause } from '../../api/status.ts';
import { goQuote } from '../../util/go-quote.ts';
import type { FieldManager } from './managed-fields.ts';

/** A field that another manager owns and that an apply would change. */
export interface Conflict {
  readonly manager: string;
  readonly operation: FieldManager['operation'];
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  /** `.spec.template.spec.containers[name="web"].image` */
  readonly field: string;
}

/** What a 409 (reason `Conflict`) says of conflicts: its message and `details.causes`. */
export function describeConflicts(conflicts: readonly Conflict[]): {
  readonly message: string;
  readonly causes: StatusCause[];
} {
  const causes = conflicts.map((conflict) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${displayManager(conflict)}`,
    field: conflict.field,
  }));
  const [first, ...others] = conflicts;
  if (first && others.length === 0) {
    const message = `Apply failed with 1 conflict: conflict with ${displayManager(first)}: ${first.field}`;
    return { message, causes };
  }
  const byManager = new Map<string, string[]>();
  for (const conflict of conflicts) {
    const manager = displayManager(conflict);
    const fields = byManager.get(manager);
    if (fields) fields.push(conflict.field);
    else byManager.set(manager, [conflict.field]);
  }
  const lines = [...byManager.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, fields]) => `conflicts with ${manager}:\n- ${fields.join('\n- ')}`);
  const message = `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
  return { message, causes };
}

/** `"kubectl" using apps/v1` for an update, `"helm"` for an apply. */
function displayManager(conflict: Conflict): string {
  const { manager, operation, apiVersion, subresource } = conflict;
  const part = subresource ? ` with subresource ${goQuote(subresource)}` : '';
  return `${goQuote(manager)}${part}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
