import { objectsIn } from '../../../util/json-value.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import { columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { annotationWarnings } from '../shared/warnings.ts';

export const SERVICE_ACCOUNT: BuiltinKind = {
  resource: 'serviceaccounts',
  revalidatesName: 'object',
  returnsDeleted: true,
  hooks: { prepareForCreate: keepNamesOfSecrets, prepareForUpdate: keepNamesOfSecrets },
  columns: columns(),
  warnings: (account, previous) =>
    previous?.metadata.annotations?.[MOUNTABLE_SECRETS] === undefined
      ? annotationWarnings(account, {
          [MOUNTABLE_SECRETS]:
            'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets',
        })
      : [],
};

/** A Secret in the same namespace has a name only. */
function keepNamesOfSecrets(account: ApiObject): void {
  if (!Array.isArray(account['secrets'])) return;
  account['secrets'] = objectsIn(account, 'secrets').map(({ name }) =>
    name === undefined || name === '' ? {} : { name },
  );
}

const MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';
