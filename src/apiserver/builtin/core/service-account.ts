import { columns } from '../../table/column.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { annotationWarnings } from '../shared/warnings.ts';

export const SERVICE_ACCOUNT: BuiltinKind = {
  resource: 'serviceaccounts',
  revalidatesName: 'object',
  returnsDeleted: true,
  columns: columns(),
  warnings: (account, previous) =>
    previous?.metadata.annotations?.[MOUNTABLE_SECRETS] === undefined
      ? annotationWarnings(account, {
          [MOUNTABLE_SECRETS]:
            'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets',
        })
      : [],
};

const MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';
