import { conversions } from './functions/conversions.ts';
import { kubernetes } from './functions/kubernetes.ts';
import { lists } from './functions/lists.ts';
import { networks, urls } from './functions/network.ts';
import { operators } from './functions/operators.ts';
import { optionals } from './functions/optionals.ts';
import { strings } from './functions/strings.ts';
import type { Overload } from './overload.ts';

/** Made when the first rule is compiled: few servers see one. */
let byName: Map<string, Overload[]> | undefined;

/** Every signature of a function; empty if there is no such function. */
export function overloadsOf(name: string): readonly Overload[] {
  return functions().get(name) ?? [];
}

/** Whether there is a function of this name, with dots in it: `optional.of`. */
export function isNamespaced(name: string): boolean {
  return functions().has(name);
}

function functions(): Map<string, Overload[]> {
  if (!byName) {
    byName = Map.groupBy(
      [
        ...operators(),
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
