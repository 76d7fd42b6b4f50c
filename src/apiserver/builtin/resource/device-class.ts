import { qualifiedNameProblems } from '../../../api/object-names.ts';
import { columns } from '../../table/column.ts';
import { validateConfigurations, validateSelectors } from './device-claim-validation.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const DEVICE_CLASS: BuiltinKind = {
  resource: 'resource.k8s.io/deviceclasses',
  // As upstream, which validates only the generated name.
  prefixFormat: 'pathSegment',
  tracksGeneration: true,
  returnsDeleted: true,
  validate: (deviceClass) => {
    const spec = deviceClass.in('spec');
    validateSelectors(spec);
    validateConfigurations(spec);
    const field = 'extendedResourceName';
    if (!spec.has(field)) return;
    const name = spec.text(field);
    if (!name.includes('/')) {
      spec.invalid(field, "a name must be a domain-prefixed path, such as 'example.com/my-prop'");
    } else if (name.includes('kubernetes.io/')) {
      spec.invalid(field, 'must not have "kubernetes.io/" domain');
    }
    if (name.startsWith('requests.')) spec.invalid(field, 'must not have "requests." prefix');
    // The name of its quota.
    spec.problems(field, qualifiedNameProblems(`requests.${name}`));
  },
  columns: columns(),
};
