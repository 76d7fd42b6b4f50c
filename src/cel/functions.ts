import { authorization } from './functions/authorization.ts';
import { conversions } from './functions/conversions.ts';
import { kubernetes } from './functions/kubernetes.ts';
import { lists } from './functions/lists.ts';
import { networks, urls } from './functions/network.ts';
import { operators } from './functions/operators.ts';
import { optionals } from './functions/optionals.ts';
import { strings } from './functions/strings.ts';
import type { Overload } from './values/overload.ts';

/** Created when the first rule is compiled, because many servers have no rules. */
let byName: Map<string, Overload[]> | undefined;

/** Returns all overloads of a function; empty if it does not exist. */
export function overloadsOf(name: string): readonly Overload[] {
  return functions().get(name) ?? [];
}

/** Whether a function with this qualified name exists: `optional.of`. */
export function isNamespaced(name: string): boolean {
  return functions().has(name);
}

function functions(): Map<string, Overload[]> {
  if (!byName) {
    byName = Map.groupBy(
      [
        ...operators(),
        ...authorization(),
        ...conversions(),
        ...strings(),
        ...lists(),
        ...optionals(),
        ...kubernetes(),
        ...networks(),
        ...urls(),
      ],
      ({ name }) => name,
    );
  }
  return byName;
}
